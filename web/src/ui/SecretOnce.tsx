// A secret that is shown once.
import { Button, Modal } from '@mantine/core';
import { Notice } from './Problem';
import { Copy } from './parts';

/** The dialog with a new secret; closed while `secret` is undefined. */
export function SecretOnce({
  title,
  secret,
  onClose,
}: {
  title: string;
  secret: string | undefined;
  onClose: () => void;
}) {
  return (
    <Modal opened={secret !== undefined} onClose={onClose} title={<b>{title}</b>} size="lg" closeOnClickOutside={false}>
      <div className="stack">
        <Notice tone="warn" icon="info">
          <b>Copy it now.</b> The platform cannot show it again.
        </Notice>
        <div className="card card-body wrap-any" data-secret>
          <Copy value={secret ?? ''} what="secret" />
        </div>
        <div className="row" style={{ justifyContent: 'flex-end' }}>
          <Button onClick={onClose}>I have copied it</Button>
        </div>
      </div>
    </Modal>
  );
}

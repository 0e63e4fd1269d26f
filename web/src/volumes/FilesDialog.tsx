// The files of a volume: a folder at a time, with uploads, downloads and deleting.
import { Button, FileButton, Modal, Progress, TextInput } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useState } from 'react';
import type { SyntheticEvent } from 'react';
import type { Problem } from '../api/errors';
import type { VolumeBitsFragment } from '../generated/graphql';
import { bytes } from '../lib/format';
import { Icon } from '../ui/Icons';
import { ProblemNotice } from '../ui/Problem';
import { Ago, DataTable, Empty, Loading } from '../ui/parts';
import { addressOf, makeFolder, removeEntry, segmentOf } from './files';
import type { FileEntry } from './files';
import { useFolder, useUploads } from './useFiles';
import type { Uploads } from './useFiles';

interface Given {
  readonly volume: VolumeBitsFragment;
  readonly mayWrite: boolean;
  readonly onClose: () => void;
}

/** The dialog, open as long as it is mounted. */
export function FilesDialog(given: Given) {
  const phone = useMediaQuery('(max-width: 640px)');
  return (
    <Modal
      opened
      onClose={given.onClose}
      title={<b>Files of {given.volume.name}</b>}
      size="xl"
      fullScreen={phone}
      centered={!phone}
      closeButtonProps={{ 'aria-label': 'Close the files' }}
    >
      <Files {...given} />
    </Modal>
  );
}

function Files({ volume, mayWrite }: Given) {
  const [segments, setSegments] = useState<readonly string[]>([]);
  const [removing, setRemoving] = useState<FileEntry>();
  const folder = useFolder(volume.id, segments);
  const uploads = useUploads(volume.id, folder.refresh);
  return (
    <div className="stack" data-files={volume.name}>
      <Path name={volume.name} segments={segments} go={setSegments} />
      {mayWrite && <Bring volumeId={volume.id} segments={segments} uploads={uploads} onDone={folder.refresh} />}
      <Running uploads={uploads} />
      {folder.problem !== undefined && <ProblemNotice problem={folder.problem} onRetry={folder.refresh} />}
      {folder.entries === undefined && folder.problem === undefined && <Loading />}
      {folder.entries?.length === 0 && (
        <Empty icon="allocations" title="No files here">
          {mayWrite ? 'Upload some, or have a workload write them.' : 'A workload that uses the volume writes them.'}
        </Empty>
      )}
      {folder.entries !== undefined && folder.entries.length > 0 && (
        <DataTable
          label="Files"
          columns={columns(volume.id, segments, setSegments, mayWrite ? setRemoving : undefined)}
          rows={folder.entries}
          keyOf={(row) => row.segment}
        />
      )}
      {folder.more !== undefined && (
        <Button variant="default" onClick={folder.more}>
          Show more
        </Button>
      )}
      {removing !== undefined && (
        <Removal
          volumeId={volume.id}
          segments={[...segments, removing.segment]}
          entry={removing}
          onClose={() => setRemoving(undefined)}
          onDone={folder.refresh}
        />
      )}
    </div>
  );
}

/** Returns a segment as readable text. */
function shown(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // it is not UTF-8
  }
}

function Path({
  name,
  segments,
  go,
}: {
  name: string;
  segments: readonly string[];
  go: (to: readonly string[]) => void;
}) {
  return (
    <nav className="row" aria-label="Folder" style={{ flexWrap: 'wrap' }}>
      {[name, ...segments.map(shown)].map((text, at, all) =>
        at === all.length - 1 ? (
          <b key={at} aria-current="location">
            {text}
          </b>
        ) : (
          <span key={at} className="row">
            <Button size="compact-sm" variant="default" onClick={() => go(segments.slice(0, at))}>
              {text}
            </Button>
            <span aria-hidden="true">/</span>
          </span>
        ),
      )}
    </nav>
  );
}

function Bring({
  volumeId,
  segments,
  uploads,
  onDone,
}: {
  volumeId: string;
  segments: readonly string[];
  uploads: Uploads;
  onDone: () => void;
}) {
  const [name, setName] = useState('');
  const [problem, setProblem] = useState<Problem>();
  const make = async (event: SyntheticEvent) => {
    event.preventDefault();
    const answer = await makeFolder(volumeId, [...segments, segmentOf(name)]);
    setProblem(answer.problem);
    if (answer.problem !== undefined) return;
    setName('');
    onDone();
  };
  return (
    <>
      <form className="row" onSubmit={(event) => void make(event)} style={{ alignItems: 'flex-end', flexWrap: 'wrap' }}>
        <FileButton multiple onChange={(chosen) => uploads.add(segments, chosen)}>
          {(props) => (
            <Button {...props} leftSection={<Icon name="plus" size={15} />}>
              Upload files
            </Button>
          )}
        </FileButton>
        <TextInput
          label="New folder"
          maxLength={255}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Button type="submit" variant="default" disabled={name === '' || name === '.' || name === '..'}>
          Create the folder
        </Button>
      </form>
      {problem !== undefined && <ProblemNotice problem={problem} />}
    </>
  );
}

function Running({ uploads }: { uploads: Uploads }) {
  return (
    <>
      {uploads.list.map((one) => (
        <div key={one.id} className="stack" style={{ gap: 4 }} data-upload={one.state}>
          <div className="row" style={{ justifyContent: 'space-between' }}>
            <span role="status">
              {one.name}: {one.state === 'digest' ? 'reading' : one.state === 'send' ? 'uploading' : one.state}
            </span>
            {one.state !== 'uploaded' && (
              <Button size="compact-xs" variant="default" onClick={() => uploads.end(one.id)}>
                {one.state === 'failed' ? 'Dismiss' : 'Stop'}
                <span className="hidden-visually"> {one.name}</span>
              </Button>
            )}
          </div>
          {(one.state === 'digest' || one.state === 'send') && (
            <Progress value={Math.round(100 * one.done)} aria-label={`${one.name}, ${one.state}`} />
          )}
          {one.problem !== undefined && <ProblemNotice problem={one.problem} onRetry={() => uploads.retry(one.id)} />}
        </div>
      ))}
    </>
  );
}

const kinds = { FILE: '', FOLDER: 'folder', LINK: 'link', OTHER: 'pipe, device or socket' } as const;

function columns(
  volumeId: string,
  segments: readonly string[],
  go: (to: readonly string[]) => void,
  remove: ((entry: FileEntry) => void) | undefined,
) {
  return [
    {
      head: 'Name',
      cell: (row: FileEntry) =>
        row.kind === 'FOLDER' ? (
          <Button size="compact-sm" variant="default" onClick={() => go([...segments, row.segment])}>
            {row.name}/
          </Button>
        ) : (
          <span>
            {row.name}
            <span className="sub">{kinds[row.kind]}</span>
          </span>
        ),
    },
    {
      head: 'Size',
      right: true,
      cell: (row: FileEntry) => <span className="num">{row.kind === 'FILE' ? bytes(row.size) : ''}</span>,
    },
    { head: 'Changed', cell: (row: FileEntry) => <Ago at={row.modifiedAt} /> },
    {
      head: '',
      right: true,
      cell: (row: FileEntry) => (
        <span className="row" style={{ flexWrap: 'nowrap', justifyContent: 'flex-end' }}>
          {row.kind === 'FILE' && (
            <Button
              component="a"
              size="compact-xs"
              variant="default"
              href={addressOf(volumeId, [...segments, row.segment], false)}
              download={row.name}
            >
              Download<span className="hidden-visually"> {row.name}</span>
            </Button>
          )}
          {remove !== undefined && (
            <Button size="compact-xs" variant="default" onClick={() => remove(row)}>
              Delete<span className="hidden-visually"> {row.name}</span>
            </Button>
          )}
        </span>
      ),
    },
  ];
}

function Removal({
  volumeId,
  segments,
  entry,
  onClose,
  onDone,
}: {
  volumeId: string;
  segments: readonly string[];
  entry: FileEntry;
  onClose: () => void;
  onDone: () => void;
}) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const folder = entry.kind === 'FOLDER';
  const act = async () => {
    setBusy(true);
    const answer = await removeEntry(volumeId, segments, folder);
    setBusy(false);
    setProblem(answer.problem);
    if (answer.problem !== undefined) return;
    onDone();
    onClose();
  };
  return (
    <Modal opened onClose={onClose} title={<b>Delete {entry.name}</b>} centered>
      <div className="stack">
        <p className="soft">
          {folder ? 'The folder is deleted with all that is in it.' : 'The file is deleted.'} This cannot be undone.
        </p>
        {problem !== undefined && <ProblemNotice problem={problem} />}
        <div className="row" style={{ justifyContent: 'flex-end' }}>
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button color="red" loading={busy} onClick={() => void act()}>
            {folder ? 'Delete with all files' : 'Delete the file'}
          </Button>
        </div>
      </div>
    </Modal>
  );
}

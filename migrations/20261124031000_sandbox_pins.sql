-- +goose Up
-- An artifact of the platform's that only unreleased versions pin is not everybody's. A pin in a sandbox is no such pin: it
-- would let every tenant hide what the platform offers.
ALTER TABLE "manifest_artifact" ADD COLUMN "sandbox" boolean NOT NULL DEFAULT false;
-- +goose StatementBegin
CREATE FUNCTION platform.carry_sandbox_pin() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  SELECT m.sandbox INTO STRICT NEW.sandbox FROM manifest m WHERE m.id = NEW.manifest_id;
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER carry_sandbox_pin BEFORE INSERT ON manifest_artifact FOR EACH ROW EXECUTE FUNCTION platform.carry_sandbox_pin();
UPDATE manifest_artifact SET sandbox = true WHERE manifest_id IN (SELECT id FROM manifest WHERE sandbox);

DROP POLICY api_read ON artifact;
CREATE POLICY api_read ON artifact FOR SELECT TO app_api USING (
  tenant_id = ANY ((SELECT platform.scope('app.seen_tenants'))::text[]) OR tenant_id = ANY ((SELECT platform.scope('app.tenants'))::text[])
  OR EXISTS (SELECT FROM manifest_artifact p JOIN manifest m ON m.id = p.manifest_id WHERE p.artifact_id = artifact.id)
  OR (tenant_id IS NULL AND NOT EXISTS (SELECT FROM manifest_artifact p WHERE p.artifact_id = artifact.id AND NOT p.sandbox)));

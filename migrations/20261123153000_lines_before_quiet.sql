-- +goose Up
-- What an operation shows and its instance's timeline does not have yet, since it followed an event within its pace.
ALTER TABLE "operation" ADD COLUMN "untold" boolean NOT NULL DEFAULT false;
CREATE INDEX "operation_untold" ON "operation" ("id") WHERE (untold AND (ended_at IS NULL));
-- +goose Down

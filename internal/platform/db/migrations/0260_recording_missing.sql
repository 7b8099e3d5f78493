-- Audio of the call that is not in the recording, because the server could not write it, in milliseconds.
ALTER TABLE recordings ADD COLUMN missing_ms INTEGER NOT NULL DEFAULT 0;

-- Numbers that were removed from transcripts and recordings, as JSON, and the state of their removal from a recording: empty, pending,
-- done, or withheld if they could not be found.
ALTER TABLE transcripts ADD COLUMN redactions TEXT NOT NULL DEFAULT '[]';
ALTER TABLE recordings ADD COLUMN redactions TEXT NOT NULL DEFAULT '[]';
ALTER TABLE recordings ADD COLUMN redaction TEXT NOT NULL DEFAULT '';

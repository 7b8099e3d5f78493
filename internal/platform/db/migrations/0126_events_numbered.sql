-- An event has no number when it is written, and gets one a moment later: it enters the index of numbers once, with its number.
DROP INDEX events_sequence;
CREATE INDEX events_sequence ON events (org_id, sequence) WHERE sequence IS NOT NULL;

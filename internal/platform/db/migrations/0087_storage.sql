-- How much is kept is asked on the way of calls: it is summed from these alone.
CREATE INDEX recordings_stored ON recordings (org_id, size_bytes) WHERE size_bytes > 0 AND status <> 'deleted';
CREATE INDEX voicemails_stored ON voicemails (org_id, size_bytes) WHERE status <> 'deleted';
CREATE INDEX audio_stored ON audio (org_id, size_bytes);

-- What was heard from a number, and messages left by it, in the order of time.
DROP INDEX messages_from;
DROP INDEX messages_to;
CREATE INDEX messages_from ON messages (org_id, from_number, created_at, id);
CREATE INDEX messages_to ON messages (org_id, to_number, created_at, id);
CREATE INDEX voicemails_from ON voicemails (org_id, from_number, received_at, id);

-- What carriers call the parts of messages. message_id is NULL where a receipt came before we knew whose it is.
CREATE TABLE message_parts (
	org_id     TEXT NOT NULL,
	carrier    TEXT NOT NULL,
	remote_id  TEXT NOT NULL,
	message_id TEXT,
	part       INTEGER NOT NULL,
	status     TEXT NOT NULL,
	error      TEXT,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, carrier, remote_id)
);
CREATE INDEX message_parts_message ON message_parts (org_id, message_id, part);
CREATE INDEX message_parts_early ON message_parts (created_at) WHERE message_id IS NULL;
CREATE INDEX messages_unsettled ON messages (org_id, carrier, status) WHERE status IN ('queued', 'sending');

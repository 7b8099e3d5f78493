-- Text messages, the conversations they belong to, and who asked not to be written to.
CREATE TABLE conversations (
	org_id          TEXT NOT NULL REFERENCES orgs (id),
	id              TEXT NOT NULL,
	number_id       TEXT,
	org_number      TEXT NOT NULL,
	peer_number     TEXT NOT NULL,
	status          TEXT NOT NULL,
	assignee_id     TEXT,
	unread_count    INTEGER NOT NULL,
	tags            TEXT NOT NULL,
	last_message    TEXT NOT NULL,
	last_message_at BIGINT NOT NULL,
	created_at      BIGINT NOT NULL,
	updated_at      BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX conversations_pair ON conversations (org_id, org_number, peer_number);
CREATE INDEX conversations_last ON conversations (org_id, last_message_at, id);
CREATE INDEX conversations_peer ON conversations (org_id, peer_number);

-- reference: what the carrier knows the message by. forwarded: whether an inbound message was handed to telephones.
CREATE TABLE messages (
	org_id          TEXT NOT NULL,
	id              TEXT NOT NULL,
	conversation_id TEXT NOT NULL,
	direction       TEXT NOT NULL,
	status          TEXT NOT NULL,
	from_number     TEXT NOT NULL,
	to_number       TEXT NOT NULL,
	body            TEXT NOT NULL,
	segments        INTEGER NOT NULL,
	encoding        TEXT NOT NULL,
	media           TEXT NOT NULL,
	user_id         TEXT,
	source          TEXT NOT NULL,
	error           TEXT,
	scheduled_at    BIGINT,
	created_at      BIGINT NOT NULL,
	sent_at         BIGINT,
	delivered_at    BIGINT,
	metadata        TEXT NOT NULL,
	sandbox         BOOLEAN NOT NULL,
	carrier         TEXT NOT NULL,
	reference       TEXT,
	automatic       BOOLEAN NOT NULL,
	forwarded       TEXT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, conversation_id) REFERENCES conversations (org_id, id)
);
CREATE INDEX messages_created ON messages (org_id, created_at, id);
CREATE INDEX messages_conversation ON messages (org_id, conversation_id, created_at, id);
CREATE INDEX messages_from ON messages (org_id, from_number);
CREATE INDEX messages_to ON messages (org_id, to_number);
CREATE UNIQUE INDEX messages_reference ON messages (org_id, carrier, reference) WHERE reference IS NOT NULL;

-- phone is NULL once everything about the number was erased; the digest still keeps messages from being sent to it.
CREATE TABLE opt_outs (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	digest     TEXT NOT NULL,
	number_id  TEXT NOT NULL,
	id         TEXT NOT NULL,
	phone      TEXT,
	source     TEXT NOT NULL,
	keyword    TEXT,
	message_id TEXT,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, digest, number_id)
);
CREATE INDEX opt_outs_created ON opt_outs (org_id, created_at, id);

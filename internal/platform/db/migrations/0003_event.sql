-- The outbox: written in the transaction of the fact, numbered when it is read.
CREATE TABLE events (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	sequence    BIGINT,
	kind        TEXT NOT NULL,
	call_id     TEXT,
	audience    TEXT NOT NULL,
	body        TEXT NOT NULL,
	occurred_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);
CREATE INDEX events_open ON events (id) WHERE sequence IS NULL;
CREATE INDEX events_sequence ON events (org_id, sequence);
CREATE INDEX events_call ON events (org_id, call_id);
CREATE TABLE event_sequences (
	org_id TEXT PRIMARY KEY REFERENCES orgs (id),
	last   BIGINT NOT NULL
);

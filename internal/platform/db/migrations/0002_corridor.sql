-- Answers kept for Idempotency-Key, encrypted, for 24 hours.
CREATE TABLE idempotency (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	body_hash  TEXT NOT NULL,
	state      TEXT NOT NULL,
	status     INTEGER NOT NULL,
	answer     BLOB,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);
CREATE INDEX idempotency_created ON idempotency (created_at);

-- Every write: who, with which credential, from where.
CREATE TABLE audit (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	at         BIGINT NOT NULL,
	operation  TEXT NOT NULL,
	target     TEXT NOT NULL,
	key_id     TEXT NOT NULL,
	user_id    TEXT,
	source     TEXT NOT NULL,
	request_id TEXT NOT NULL,
	PRIMARY KEY (org_id, id)
);

-- Telephone numbers, in E.164. Over all organisations a number has one owner at a time.
CREATE TABLE numbers (
	org_id         TEXT NOT NULL REFERENCES orgs (id),
	id             TEXT NOT NULL,
	number         TEXT NOT NULL,
	country        TEXT NOT NULL,
	region         TEXT,
	locality       TEXT,
	type           TEXT NOT NULL,
	capabilities   TEXT NOT NULL,
	status         TEXT NOT NULL,
	label          TEXT NOT NULL,
	provider       TEXT NOT NULL,
	trunk_id       TEXT,
	user_id        TEXT,
	sms_enabled    BOOLEAN NOT NULL,
	caller_id_name TEXT,
	recording_mode TEXT NOT NULL,
	fallback       TEXT,
	emergency      TEXT NOT NULL,
	created_at     BIGINT NOT NULL,
	updated_at     BIGINT NOT NULL,
	allocated_at   BIGINT,
	released_at    BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, trunk_id) REFERENCES trunks (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE UNIQUE INDEX numbers_owner ON numbers (number) WHERE status NOT IN ('released', 'failed', 'port_failed');
CREATE INDEX numbers_user ON numbers (org_id, user_id);
CREATE INDEX numbers_trunk ON numbers (org_id, trunk_id);

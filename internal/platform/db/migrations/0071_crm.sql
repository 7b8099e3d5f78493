-- Systems that organisations connected. settings is sealed: addresses and credentials together.
CREATE TABLE crm_connections (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	id           TEXT NOT NULL,
	provider     TEXT NOT NULL,
	name         TEXT NOT NULL,
	enabled      BOOLEAN NOT NULL,
	priority     INTEGER NOT NULL,
	timeout_ms   INTEGER NOT NULL,
	settings     BLOB NOT NULL,
	field_map    TEXT NOT NULL,
	refreshed_at BIGINT,
	entries      INTEGER NOT NULL,
	refresh_error TEXT,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);

-- Which record of a connected system a contact is.
CREATE TABLE crm_refs (
	org_id        TEXT NOT NULL,
	contact_id    TEXT NOT NULL,
	connection_id TEXT NOT NULL,
	external_id   TEXT NOT NULL,
	url           TEXT NOT NULL,
	status        TEXT NOT NULL,
	synced_at     BIGINT,
	error         TEXT,
	PRIMARY KEY (org_id, contact_id, connection_id),
	FOREIGN KEY (org_id, connection_id) REFERENCES crm_connections (org_id, id) ON DELETE CASCADE,
	FOREIGN KEY (org_id, contact_id) REFERENCES contacts (org_id, id) ON DELETE CASCADE
);
CREATE INDEX crm_refs_connection ON crm_refs (org_id, connection_id);

-- What is to be written to connected systems, and what became of it. subject_id is a note, a call or a contact.
CREATE TABLE crm_syncs (
	org_id        TEXT NOT NULL,
	id            TEXT NOT NULL,
	connection_id TEXT NOT NULL,
	kind          TEXT NOT NULL,
	subject_id    TEXT NOT NULL,
	contact_id    TEXT,
	call_id       TEXT,
	status        TEXT NOT NULL,
	attempts      INTEGER NOT NULL,
	external_id   TEXT,
	error         TEXT,
	created_at    BIGINT NOT NULL,
	updated_at    BIGINT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, connection_id) REFERENCES crm_connections (org_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX crm_syncs_subject ON crm_syncs (org_id, subject_id, connection_id);
CREATE INDEX crm_syncs_connection ON crm_syncs (org_id, connection_id);

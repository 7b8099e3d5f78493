-- Calls in progress: what changes while they run, who listens in, notes and tags, and what a restart needs.
ALTER TABLE calls ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN muted BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE calls ADD COLUMN transfer TEXT;
ALTER TABLE calls ADD COLUMN transferred_to TEXT;
ALTER TABLE calls ADD COLUMN machine BOOLEAN;
ALTER TABLE legs ADD COLUMN srtp BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE legs ADD COLUMN sip_status INTEGER;
ALTER TABLE legs ADD COLUMN quality TEXT;

CREATE TABLE monitors (
	org_id        TEXT NOT NULL,
	id            TEXT NOT NULL,
	call_id       TEXT NOT NULL,
	supervisor_id TEXT NOT NULL,
	mode          TEXT NOT NULL,
	status        TEXT NOT NULL,
	started_at    BIGINT NOT NULL,
	ended_at      BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX monitors_call ON monitors (org_id, call_id);

-- What a restarted node carries a call on with. The row is gone when the call has ended.
CREATE TABLE call_dialogs (
	org_id  TEXT NOT NULL,
	call_id TEXT NOT NULL,
	node    TEXT NOT NULL,
	state   TEXT NOT NULL,
	dialogs TEXT NOT NULL,
	PRIMARY KEY (org_id, call_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX call_dialogs_node ON call_dialogs (node);

-- The steps and messages of a call, compressed.
CREATE TABLE call_stories (
	org_id     TEXT NOT NULL,
	call_id    TEXT NOT NULL,
	story      BLOB NOT NULL,
	written_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, call_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX call_stories_written ON call_stories (written_at);

CREATE TABLE notes (
	org_id      TEXT NOT NULL,
	id          TEXT NOT NULL,
	call_id     TEXT NOT NULL,
	body        TEXT NOT NULL,
	pinned      BOOLEAN NOT NULL,
	crm_sync    BOOLEAN NOT NULL,
	author_type TEXT NOT NULL,
	author_id   TEXT NOT NULL,
	author_name TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX notes_call ON notes (org_id, call_id, created_at, id);

CREATE TABLE tags (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	name        TEXT NOT NULL,
	color       TEXT,
	description TEXT,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX tags_name ON tags (org_id, name);
CREATE TABLE call_tags (
	org_id  TEXT NOT NULL,
	call_id TEXT NOT NULL,
	tag_id  TEXT NOT NULL,
	PRIMARY KEY (org_id, call_id, tag_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id),
	FOREIGN KEY (org_id, tag_id) REFERENCES tags (org_id, id)
);
CREATE INDEX call_tags_tag ON call_tags (org_id, tag_id, call_id);

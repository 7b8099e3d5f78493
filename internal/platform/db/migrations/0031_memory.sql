-- What is remembered of a call: facts and note, for the history of a number.
CREATE TABLE memory_calls (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	call_id      TEXT NOT NULL,
	phone        TEXT NOT NULL,
	at           BIGINT NOT NULL,
	direction    TEXT NOT NULL,
	status       TEXT NOT NULL,
	talk_seconds INTEGER NOT NULL,
	agent_id     TEXT,
	agent_name   TEXT,
	queue_id     TEXT,
	contact_id   TEXT,
	recording_id TEXT,
	tags         TEXT NOT NULL,
	summary      TEXT NOT NULL,
	outcome      TEXT NOT NULL,
	sentiment    TEXT,
	topics       TEXT NOT NULL,
	action_items TEXT NOT NULL,
	PRIMARY KEY (org_id, call_id)
);
CREATE INDEX memory_calls_phone ON memory_calls (org_id, phone, at);
CREATE INDEX memory_calls_at ON memory_calls (org_id, at);

-- Passages: the summary of a call, or some turns of its transcript. key rises with the time of learning.
CREATE TABLE memory_items (
	org_id   TEXT NOT NULL REFERENCES orgs (id),
	key      BIGINT NOT NULL,
	id       TEXT NOT NULL,
	call_id  TEXT NOT NULL,
	kind     TEXT NOT NULL,
	start_ms INTEGER,
	end_ms   INTEGER,
	text     TEXT NOT NULL,
	PRIMARY KEY (org_id, key),
	FOREIGN KEY (org_id, call_id) REFERENCES memory_calls (org_id, call_id) ON DELETE CASCADE
);
CREATE INDEX memory_items_call ON memory_items (org_id, call_id);

-- What passages are found by: vector, words, and what searches are narrowed by. Apart from the text, so that
-- reading all of an organisation's is reading little.
CREATE TABLE memory_vectors (
	org_id    TEXT NOT NULL REFERENCES orgs (id),
	key       BIGINT NOT NULL,
	phone     TEXT NOT NULL,
	at        BIGINT NOT NULL,
	kind      TEXT NOT NULL,
	direction TEXT NOT NULL,
	agent_id  TEXT,
	queue_id  TEXT,
	model     TEXT NOT NULL,
	vector    BLOB NOT NULL,
	terms     BLOB NOT NULL,
	PRIMARY KEY (org_id, key),
	FOREIGN KEY (org_id, key) REFERENCES memory_items (org_id, key) ON DELETE CASCADE
);
CREATE INDEX memory_vectors_phone ON memory_vectors (org_id, phone, at);
CREATE INDEX memory_vectors_at ON memory_vectors (org_id, at);

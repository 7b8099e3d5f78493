-- What was said on calls. One transcript per call.
CREATE TABLE transcripts (
	org_id           TEXT NOT NULL,
	id               TEXT NOT NULL,
	call_id          TEXT NOT NULL,
	status           TEXT NOT NULL,
	language         TEXT NOT NULL,
	engine           TEXT NOT NULL,
	duration_seconds INTEGER NOT NULL,
	word_count       INTEGER NOT NULL,
	text             TEXT NOT NULL,
	segments         TEXT NOT NULL,
	skipped_reason   TEXT,
	error            TEXT,
	created_at       BIGINT NOT NULL,
	completed_at     BIGINT,
	PRIMARY KEY (org_id, id),
	UNIQUE (org_id, call_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX transcripts_created ON transcripts (org_id, created_at, id);

-- The note of a call, and how far it has come into memory. announced_at is when call.transcription was told.
CREATE TABLE summaries (
	org_id           TEXT NOT NULL,
	call_id          TEXT NOT NULL,
	status           TEXT NOT NULL,
	note             TEXT NOT NULL,
	language         TEXT NOT NULL,
	error            TEXT,
	embedding        TEXT NOT NULL,
	embedding_model  TEXT NOT NULL,
	embedding_size   INTEGER NOT NULL,
	created_at       BIGINT NOT NULL,
	announced_at     BIGINT,
	PRIMARY KEY (org_id, call_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);

-- What was said between callers and voice agents, piece by piece, as it is in the calls' transcripts.
CREATE TABLE assistant_words (
	org_id   TEXT NOT NULL REFERENCES orgs (id),
	call_id  TEXT NOT NULL,
	id       TEXT NOT NULL,
	talk     TEXT NOT NULL,
	speaker  TEXT NOT NULL,
	said     TEXT NOT NULL,
	began_at BIGINT NOT NULL,
	ended_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, call_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX assistant_words_at ON assistant_words (org_id, began_at);

-- What callers said to voice agents and what they heard in answer. The stages are in ms from the end of the caller's last word.
CREATE TABLE assistant_turns (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	call_id       TEXT NOT NULL,
	id            TEXT NOT NULL,
	at            BIGINT NOT NULL,
	heard         TEXT NOT NULL,
	said          TEXT NOT NULL,
	interrupted   BOOLEAN NOT NULL,
	engine        TEXT NOT NULL,
	tools         TEXT NOT NULL,
	understood_ms INTEGER,
	endpoint_ms   INTEGER,
	thought_ms    INTEGER,
	voiced_ms     INTEGER,
	audio_ms      INTEGER,
	PRIMARY KEY (org_id, call_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX assistant_turns_at ON assistant_turns (org_id, at);

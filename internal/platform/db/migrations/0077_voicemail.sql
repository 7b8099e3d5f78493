-- Messages that callers left. The sound lies in the blob store.
CREATE TABLE voicemails (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	id            TEXT NOT NULL,
	call_id       TEXT NOT NULL,
	mailbox_type  TEXT NOT NULL,
	mailbox_id    TEXT NOT NULL,
	from_number   TEXT NOT NULL,
	contact       TEXT,
	received_at   BIGINT NOT NULL,
	duration_ms   BIGINT NOT NULL,
	size_bytes    BIGINT NOT NULL,
	sha256        TEXT NOT NULL,
	blob          TEXT NOT NULL,
	status        TEXT NOT NULL,
	transcript_id TEXT,
	text          TEXT,
	ai_summary    TEXT,
	urgency       TEXT,
	assignee_id   TEXT,
	read_at       BIGINT,
	updated_at    BIGINT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id),
	FOREIGN KEY (org_id, assignee_id) REFERENCES users (org_id, id)
);
CREATE INDEX voicemails_received ON voicemails (org_id, received_at, id);
CREATE INDEX voicemails_mailbox ON voicemails (org_id, mailbox_id, received_at, id);
CREATE INDEX voicemails_call ON voicemails (org_id, call_id);

-- The message that was left in a call, and messages that are being left: what a crash leaves of one becomes a message at the next start.
ALTER TABLE calls ADD COLUMN voicemail_id TEXT;
CREATE TABLE voicemail_drafts (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	call_id    TEXT NOT NULL,
	mailbox_id TEXT NOT NULL,
	node       TEXT NOT NULL,
	begun_at   BIGINT NOT NULL,
	blob       TEXT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);

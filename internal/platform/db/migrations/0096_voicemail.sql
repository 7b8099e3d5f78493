-- The PINs of users' mailboxes, of which only a digest is kept, and how often a wrong one was given.
CREATE TABLE mailbox_pins (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	user_id      TEXT NOT NULL,
	salt         TEXT NOT NULL,
	digest       TEXT NOT NULL,
	wrong        INTEGER NOT NULL,
	locks        INTEGER NOT NULL,
	locked_until BIGINT,
	updated_at   BIGINT NOT NULL,
	PRIMARY KEY (org_id, user_id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX voicemails_assignee ON voicemails (org_id, assignee_id, received_at, id) WHERE assignee_id IS NOT NULL;
-- How far the words of a message have come.
ALTER TABLE voicemails ADD COLUMN transcript_status TEXT;

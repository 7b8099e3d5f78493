-- Invitations of users: redeemed once, with a token of which only a digest is kept. token: sealed, until a mail has carried it.
CREATE TABLE invitations (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	user_id     TEXT NOT NULL,
	digest      TEXT NOT NULL UNIQUE,
	token       BLOB,
	created_at  BIGINT NOT NULL,
	expires_at  BIGINT NOT NULL,
	sent_at     BIGINT,
	accepted_at BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX invitations_user ON invitations (org_id, user_id);

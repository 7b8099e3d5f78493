-- What a console keeps for a user, as JSON. The server reads nothing in it.
CREATE TABLE user_preferences (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	user_id     TEXT NOT NULL,
	preferences TEXT NOT NULL,
	updated_at  BIGINT NOT NULL,
	PRIMARY KEY (org_id, user_id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);

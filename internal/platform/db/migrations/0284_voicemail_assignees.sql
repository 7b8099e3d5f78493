-- Users to whom a message was ever assigned. Their telephones may show waiting messages, also after the message was assigned to others.
CREATE TABLE voicemail_assignees (
	org_id  TEXT NOT NULL REFERENCES orgs (id),
	user_id TEXT NOT NULL,
	PRIMARY KEY (org_id, user_id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
INSERT INTO voicemail_assignees (org_id, user_id)
	SELECT DISTINCT v.org_id, v.assignee_id FROM voicemails v JOIN users u ON u.org_id = v.org_id AND u.id = v.assignee_id;

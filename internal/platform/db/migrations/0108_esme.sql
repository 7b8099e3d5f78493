-- Programs of organisations that speak SMPP. password is a digest: the password itself is shown once and kept nowhere.
CREATE TABLE sms_applications (
	org_id           TEXT NOT NULL REFERENCES orgs (id),
	id               TEXT NOT NULL,
	name             TEXT NOT NULL,
	system_id        TEXT NOT NULL,
	password         TEXT NOT NULL,
	enabled          BOOLEAN NOT NULL,
	numbers          TEXT NOT NULL,
	max_binds        INTEGER NOT NULL,
	rate_per_second  INTEGER NOT NULL,
	default_alphabet TEXT NOT NULL,
	created_at       BIGINT NOT NULL,
	updated_at       BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX sms_applications_system ON sms_applications (system_id);

-- Under which identifier a part was answered, of which message it is, and whether a receipt is wanted. bind and node are NULL once it is
-- certain enough that the program knows the answer: until then the same message that comes again is this one.
CREATE TABLE sms_submissions (
	org_id         TEXT NOT NULL,
	id             TEXT NOT NULL,
	application_id TEXT NOT NULL,
	message_id     TEXT NOT NULL,
	receipt        INTEGER NOT NULL,
	source         TEXT NOT NULL,
	destination    TEXT NOT NULL,
	peer           TEXT NOT NULL,
	digest         TEXT NOT NULL,
	bind           TEXT,
	node           TEXT,
	created_at     BIGINT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, application_id) REFERENCES sms_applications (org_id, id)
);
CREATE INDEX sms_submissions_message ON sms_submissions (org_id, message_id);
CREATE INDEX sms_submissions_doubt ON sms_submissions (org_id, application_id, digest, created_at) WHERE bind IS NOT NULL;
CREATE INDEX sms_submissions_bind ON sms_submissions (bind) WHERE bind IS NOT NULL;
CREATE INDEX sms_submissions_peer ON sms_submissions (org_id, peer);
CREATE INDEX sms_submissions_created ON sms_submissions (created_at);

-- Parts of long messages. part_key is a digest of who sends which message to whom; done: the message was handed on, and its parts are kept
-- for a while so that those that come again are known.
CREATE TABLE sms_parts (
	org_id         TEXT NOT NULL,
	application_id TEXT NOT NULL,
	part_key       TEXT NOT NULL,
	sequence       INTEGER NOT NULL,
	id             TEXT NOT NULL,
	peer           TEXT NOT NULL,
	fragment       TEXT NOT NULL,
	checksum       TEXT NOT NULL,
	done           BOOLEAN NOT NULL,
	created_at     BIGINT NOT NULL,
	PRIMARY KEY (org_id, application_id, part_key, sequence),
	FOREIGN KEY (org_id, application_id) REFERENCES sms_applications (org_id, id)
);
CREATE INDEX sms_parts_created ON sms_parts (created_at);
CREATE INDEX sms_parts_peer ON sms_parts (org_id, peer);

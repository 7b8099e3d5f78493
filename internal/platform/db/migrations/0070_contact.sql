-- Contacts of organisations, what connected systems told of people, and the index by which both are found.
CREATE TABLE contacts (
	org_id            TEXT NOT NULL REFERENCES orgs (id),
	id                TEXT NOT NULL,
	first_name        TEXT NOT NULL,
	last_name         TEXT NOT NULL,
	name              TEXT NOT NULL,
	sort_name         TEXT NOT NULL,
	company           TEXT NOT NULL,
	title             TEXT NOT NULL,
	phones            TEXT NOT NULL,
	emails            TEXT NOT NULL,
	tags              TEXT NOT NULL,
	custom            TEXT NOT NULL,
	source            TEXT NOT NULL,
	owner_user_id     TEXT,
	vip               BOOLEAN NOT NULL,
	do_not_call       BOOLEAN NOT NULL,
	notes_count       INTEGER NOT NULL,
	search            TEXT NOT NULL,
	last_contacted_at BIGINT,
	created_at        BIGINT NOT NULL,
	updated_at        BIGINT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, owner_user_id) REFERENCES users (org_id, id)
);
CREATE INDEX contacts_name ON contacts (org_id, sort_name, id);
CREATE INDEX contacts_contacted ON contacts (org_id, COALESCE(last_contacted_at, 0), id);
CREATE INDEX contacts_updated ON contacts (org_id, updated_at, id);
CREATE INDEX contacts_owner ON contacts (org_id, owner_user_id) WHERE owner_user_id IS NOT NULL;

-- People as a connected system knows them, kept here so that they are found at once. id is the system's own.
CREATE TABLE contact_entries (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	source     TEXT NOT NULL,
	id         TEXT NOT NULL,
	name       TEXT NOT NULL,
	company    TEXT NOT NULL,
	title      TEXT NOT NULL,
	email      TEXT NOT NULL,
	url        TEXT NOT NULL,
	digest     TEXT NOT NULL,
	round      TEXT NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, source, id)
);

-- The phone index. source is '' for contacts, else a connection; record_id is a contact or an entry. number is E.164, or ''
-- where what was written is no whole number; then digits are what is left of it, and tail their last seven.
CREATE TABLE contact_phones (
	org_id    TEXT NOT NULL REFERENCES orgs (id),
	number    TEXT NOT NULL,
	source    TEXT NOT NULL,
	record_id TEXT NOT NULL,
	position  INTEGER NOT NULL,
	digits    TEXT NOT NULL,
	tail      TEXT NOT NULL,
	extension TEXT NOT NULL,
	domestic  BOOLEAN NOT NULL,
	PRIMARY KEY (org_id, number, source, record_id, position)
);
CREATE INDEX contact_phones_record ON contact_phones (org_id, source, record_id);
CREATE INDEX contact_phones_tail ON contact_phones (org_id, tail);

CREATE TABLE contact_emails (
	org_id    TEXT NOT NULL REFERENCES orgs (id),
	email     TEXT NOT NULL,
	source    TEXT NOT NULL,
	record_id TEXT NOT NULL,
	PRIMARY KEY (org_id, email, source, record_id)
);
CREATE INDEX contact_emails_record ON contact_emails (org_id, source, record_id);

CREATE TABLE contact_notes (
	org_id      TEXT NOT NULL,
	id          TEXT NOT NULL,
	contact_id  TEXT NOT NULL,
	body        TEXT NOT NULL,
	pinned      BOOLEAN NOT NULL,
	author_type TEXT NOT NULL,
	author_id   TEXT NOT NULL,
	author_name TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, contact_id) REFERENCES contacts (org_id, id)
);
CREATE INDEX contact_notes_contact ON contact_notes (org_id, contact_id, created_at, id);

-- Uploads of contacts. done is how many records of the file are dealt with; it is written with them.
CREATE TABLE contact_imports (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	source     TEXT NOT NULL,
	status     TEXT NOT NULL,
	format     TEXT NOT NULL,
	filename   TEXT NOT NULL,
	duplicates TEXT NOT NULL,
	blob       TEXT NOT NULL,
	size_bytes BIGINT NOT NULL,
	done       INTEGER NOT NULL,
	created    INTEGER NOT NULL,
	updated    INTEGER NOT NULL,
	skipped    INTEGER NOT NULL,
	failed     INTEGER NOT NULL,
	errors     TEXT NOT NULL,
	error      TEXT,
	created_at  BIGINT NOT NULL,
	started_at  BIGINT,
	finished_at BIGINT,
	PRIMARY KEY (org_id, id)
);

-- Whose call it is, as far as is known.
ALTER TABLE calls ADD COLUMN contact_id TEXT;
ALTER TABLE calls ADD COLUMN contact TEXT;
CREATE INDEX calls_contact ON calls (org_id, contact_id, started_at, id) WHERE contact_id IS NOT NULL;

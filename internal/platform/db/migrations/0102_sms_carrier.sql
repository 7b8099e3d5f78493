-- Carriers of text messages that organisations have connected. settings is sealed, the token of the callback's address with it; token is its digest.
CREATE TABLE sms_carriers (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	provider    TEXT NOT NULL,
	name        TEXT NOT NULL,
	enabled     BOOLEAN NOT NULL,
	priority    INTEGER NOT NULL,
	prefixes    TEXT NOT NULL,
	numbers     TEXT NOT NULL,
	rate        DOUBLE PRECISION NOT NULL,
	number_rate DOUBLE PRECISION NOT NULL,
	settings    BLOB NOT NULL,
	token       TEXT NOT NULL UNIQUE,
	created_at  BIGINT NOT NULL,
	updated_at  BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);

-- How carriers are, and which node keeps the connection to those that want one: until that time nobody else does.
CREATE TABLE sms_carrier_states (
	org_id     TEXT NOT NULL,
	carrier_id TEXT NOT NULL,
	node       TEXT NOT NULL,
	held_until BIGINT NOT NULL,
	status     TEXT NOT NULL,
	error      TEXT,
	changed_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, carrier_id),
	FOREIGN KEY (org_id, carrier_id) REFERENCES sms_carriers (org_id, id)
);

-- Parts of long messages that came in and wait for the others. done: the message was handed on, and its parts are known when they come again.
CREATE TABLE sms_incoming_parts (
	org_id     TEXT NOT NULL,
	carrier_id TEXT NOT NULL,
	message    TEXT NOT NULL,
	part       INTEGER NOT NULL,
	sum        TEXT NOT NULL,
	body       TEXT NOT NULL,
	done       BOOLEAN NOT NULL,
	first_at   BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, carrier_id, message, part),
	FOREIGN KEY (org_id, carrier_id) REFERENCES sms_carriers (org_id, id)
);
CREATE INDEX sms_incoming_parts_first ON sms_incoming_parts (first_at);

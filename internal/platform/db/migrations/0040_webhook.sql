-- The turn of the outbox: whoever numbers events, or changes what is held back, takes it first.
CREATE TABLE event_turn (
	id    INTEGER PRIMARY KEY,
	taken BIGINT NOT NULL
);
INSERT INTO event_turn (id, taken) VALUES (1, 0);

-- Endpoints that are told of events. holding: deliveries wait until the endpoint is back.
CREATE TABLE webhooks (
	org_id               TEXT NOT NULL REFERENCES orgs (id),
	id                   TEXT NOT NULL,
	url                  TEXT NOT NULL,
	events               TEXT NOT NULL,
	description          TEXT NOT NULL,
	status               TEXT NOT NULL,
	holding              BOOLEAN NOT NULL,
	secret               BLOB NOT NULL,
	secret_hint          TEXT NOT NULL,
	previous_secret      BLOB,
	previous_until       BIGINT,
	filters              TEXT NOT NULL,
	ordered              BOOLEAN NOT NULL,
	call_ended_timing    TEXT NOT NULL,
	signed_recording_urls BOOLEAN NOT NULL,
	timeout_seconds      INTEGER NOT NULL,
	headers              BLOB,
	consecutive_failures INTEGER NOT NULL,
	failing_since        BIGINT,
	last_success_at      BIGINT,
	last_failure_at      BIGINT,
	disabled_reason      TEXT,
	created_at           BIGINT NOT NULL,
	updated_at           BIGINT NOT NULL,
	deleted_at           BIGINT,
	PRIMARY KEY (org_id, id)
);

-- A new value with every change of an organisation's endpoints, so that what is kept of them in memory is known to be
-- current.
CREATE TABLE webhook_versions (
	org_id  TEXT PRIMARY KEY REFERENCES orgs (id),
	version TEXT NOT NULL
);

-- One event on its way to one endpoint. body is sent byte for byte. attempts counts all, spent those that used up
-- one of the twelve.
CREATE TABLE webhook_deliveries (
	org_id          TEXT NOT NULL REFERENCES orgs (id),
	id              TEXT NOT NULL,
	webhook_id      TEXT NOT NULL,
	event_id        TEXT NOT NULL,
	kind            TEXT NOT NULL,
	call_id         TEXT,
	sequence        BIGINT NOT NULL,
	body            TEXT NOT NULL,
	status          TEXT NOT NULL,
	held            BOOLEAN NOT NULL,
	attempts        INTEGER NOT NULL,
	spent           INTEGER NOT NULL,
	response_status INTEGER,
	first_at        BIGINT,
	next_attempt_at BIGINT,
	replay_of       TEXT,
	created_at      BIGINT NOT NULL,
	finished_at     BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, webhook_id) REFERENCES webhooks (org_id, id)
);
CREATE INDEX webhook_deliveries_list ON webhook_deliveries (org_id, webhook_id, created_at, id);
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (org_id, webhook_id, sequence, id) WHERE held;
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (org_id, webhook_id, created_at) WHERE finished_at IS NULL;
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (finished_at) WHERE finished_at IS NOT NULL;

-- What happened at each attempt.
CREATE TABLE webhook_attempts (
	org_id          TEXT NOT NULL,
	delivery_id     TEXT NOT NULL,
	n               INTEGER NOT NULL,
	webhook_id      TEXT NOT NULL,
	at              BIGINT NOT NULL,
	duration_ms     INTEGER NOT NULL,
	response_status INTEGER,
	response_body   TEXT,
	error           TEXT,
	PRIMARY KEY (org_id, delivery_id, n),
	FOREIGN KEY (org_id, delivery_id) REFERENCES webhook_deliveries (org_id, id)
);
CREATE INDEX webhook_attempts_at ON webhook_attempts (org_id, webhook_id, at);

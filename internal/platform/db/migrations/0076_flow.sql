-- What happens to callers. draft is the graph that is worked on; version is the one in force, 0 before the first.
CREATE TABLE flows (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	id           TEXT NOT NULL,
	name         TEXT NOT NULL,
	kind         TEXT NOT NULL,
	draft        TEXT,
	version      INTEGER NOT NULL,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL,
	published_at BIGINT,
	archived_at  BIGINT,
	PRIMARY KEY (org_id, id)
);

-- Flows as they were published. Rows are never changed.
CREATE TABLE flow_versions (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	flow_id      TEXT NOT NULL,
	version      INTEGER NOT NULL,
	id           TEXT NOT NULL,
	graph        TEXT NOT NULL,
	comment      TEXT,
	published_by TEXT,
	published_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, flow_id, version),
	FOREIGN KEY (org_id, flow_id) REFERENCES flows (org_id, id)
);

-- Numbers lead to flows, users or queues: the table is made anew, for columns with such references cannot be added to one.
CREATE TABLE numbers_new (
	org_id         TEXT NOT NULL REFERENCES orgs (id),
	id             TEXT NOT NULL,
	number         TEXT NOT NULL,
	country        TEXT NOT NULL,
	region         TEXT,
	locality       TEXT,
	type           TEXT NOT NULL,
	capabilities   TEXT NOT NULL,
	status         TEXT NOT NULL,
	label          TEXT NOT NULL,
	provider       TEXT NOT NULL,
	trunk_id       TEXT,
	user_id        TEXT,
	flow_id        TEXT,
	queue_id       TEXT,
	sms_enabled    BOOLEAN NOT NULL,
	caller_id_name TEXT,
	recording_mode TEXT NOT NULL,
	fallback       TEXT,
	emergency      TEXT NOT NULL,
	monthly_cost   TEXT,
	created_at     BIGINT NOT NULL,
	updated_at     BIGINT NOT NULL,
	allocated_at   BIGINT,
	released_at    BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, trunk_id) REFERENCES trunks (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id),
	FOREIGN KEY (org_id, flow_id) REFERENCES flows (org_id, id),
	FOREIGN KEY (org_id, queue_id) REFERENCES queues (org_id, id)
);
INSERT INTO numbers_new (org_id, id, number, country, region, locality, type, capabilities, status, label, provider, trunk_id, user_id,
		sms_enabled, caller_id_name, recording_mode, fallback, emergency, created_at, updated_at, allocated_at, released_at)
	SELECT org_id, id, number, country, region, locality, type, capabilities, status, label, provider, trunk_id, user_id,
		sms_enabled, caller_id_name, recording_mode, fallback, emergency, created_at, updated_at, allocated_at, released_at FROM numbers;
DROP TABLE numbers;
ALTER TABLE numbers_new RENAME TO numbers;
-- A number has one owner at a time, over all organisations. Those of the sandbox are not real: every organisation may have the same.
CREATE UNIQUE INDEX numbers_owner ON numbers (number) WHERE status NOT IN ('released', 'failed', 'port_failed') AND provider <> 'sandbox';
CREATE UNIQUE INDEX numbers_sandbox ON numbers (org_id, number) WHERE status NOT IN ('released', 'failed', 'port_failed');
CREATE INDEX numbers_user ON numbers (org_id, user_id);
CREATE INDEX numbers_trunk ON numbers (org_id, trunk_id);
CREATE INDEX numbers_flow ON numbers (org_id, flow_id) WHERE flow_id IS NOT NULL;
CREATE INDEX numbers_queue ON numbers (org_id, queue_id) WHERE queue_id IS NOT NULL;

-- Free numbers that carriers gave an organisation in blocks: to be searched, and taken without being ordered.
CREATE TABLE number_stock (
	org_id   TEXT NOT NULL REFERENCES orgs (id),
	number   TEXT NOT NULL,
	country  TEXT NOT NULL,
	locality TEXT,
	type     TEXT NOT NULL,
	trunk_id TEXT NOT NULL,
	added_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, number),
	FOREIGN KEY (org_id, trunk_id) REFERENCES trunks (org_id, id)
);

-- Numbers that are brought along from another carrier. The operator keeps their state by hand.
CREATE TABLE number_ports (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	id           TEXT NOT NULL,
	carrier      TEXT NOT NULL,
	documents    TEXT NOT NULL,
	status       TEXT NOT NULL,
	detail       TEXT,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL,
	completed_at BIGINT,
	PRIMARY KEY (org_id, id)
);
CREATE TABLE number_port_items (
	org_id    TEXT NOT NULL REFERENCES orgs (id),
	port_id   TEXT NOT NULL,
	number_id TEXT NOT NULL,
	PRIMARY KEY (org_id, port_id, number_id),
	FOREIGN KEY (org_id, port_id) REFERENCES number_ports (org_id, id),
	FOREIGN KEY (org_id, number_id) REFERENCES numbers (org_id, id)
);

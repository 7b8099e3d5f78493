-- Calls. A row exists from the call's start; when it ends it becomes its own call detail record (cdr_id).
CREATE TABLE calls (
	org_id           TEXT NOT NULL REFERENCES orgs (id),
	id               TEXT NOT NULL,
	cdr_id           TEXT,
	direction        TEXT NOT NULL,
	status           TEXT NOT NULL,
	stage            TEXT NOT NULL,
	source           TEXT NOT NULL,
	from_number      TEXT NOT NULL,
	from_name        TEXT,
	to_number        TEXT NOT NULL,
	number_id        TEXT,
	flow_id          TEXT,
	queue_id         TEXT,
	device_id        TEXT,
	trunk_id         TEXT,
	user_id          TEXT,
	agent_id         TEXT,
	agent_name       TEXT,
	agent_extension  TEXT,
	answered_by      TEXT,
	started_at       BIGINT NOT NULL,
	ringing_at       BIGINT,
	answered_at      BIGINT,
	ended_at         BIGINT,
	ring_seconds     INTEGER NOT NULL,
	queue_seconds    INTEGER NOT NULL,
	hold_seconds     INTEGER NOT NULL,
	talk_seconds     INTEGER NOT NULL,
	total_seconds    INTEGER NOT NULL,
	held_since       BIGINT,
	end_reason       TEXT,
	hangup_by        TEXT,
	missed_reason    TEXT,
	disposition      TEXT,
	sip_status       INTEGER,
	q850_cause       INTEGER,
	quality          TEXT,
	recording_state  TEXT NOT NULL,
	recording_id     TEXT,
	recording_ready  BOOLEAN NOT NULL,
	consent          TEXT NOT NULL,
	transcript_id    TEXT,
	ai_summary       TEXT,
	sentiment        TEXT,
	tags             TEXT NOT NULL,
	notes_count      INTEGER NOT NULL,
	metadata         TEXT NOT NULL,
	client_reference TEXT,
	sandbox          BOOLEAN NOT NULL,
	node             TEXT NOT NULL,
	announced_at     BIGINT,
	PRIMARY KEY (org_id, id)
);
CREATE INDEX calls_started ON calls (org_id, started_at, id);
CREATE INDEX calls_ended ON calls (org_id, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX calls_from ON calls (org_id, from_number, started_at, id);
CREATE INDEX calls_to ON calls (org_id, to_number, started_at, id);
CREATE INDEX calls_agent ON calls (org_id, agent_id, started_at, id) WHERE agent_id IS NOT NULL;
CREATE INDEX calls_missed ON calls (org_id, started_at, id) WHERE missed_reason IS NOT NULL;
CREATE INDEX calls_live ON calls (org_id, started_at) WHERE ended_at IS NULL;
CREATE INDEX calls_node ON calls (node) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX calls_cdr ON calls (org_id, cdr_id) WHERE cdr_id IS NOT NULL;

CREATE TABLE legs (
	org_id      TEXT NOT NULL,
	id          TEXT NOT NULL,
	call_id     TEXT NOT NULL,
	role        TEXT NOT NULL,
	user_id     TEXT,
	device_id   TEXT,
	trunk_id    TEXT,
	number      TEXT NOT NULL,
	status      TEXT NOT NULL,
	codec       TEXT,
	held_by     TEXT,
	sip_call_id TEXT NOT NULL,
	started_at  BIGINT NOT NULL,
	answered_at BIGINT,
	ended_at    BIGINT,
	end_reason  TEXT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX legs_call ON legs (org_id, call_id);

CREATE TABLE recordings (
	org_id           TEXT NOT NULL,
	id               TEXT NOT NULL,
	call_id          TEXT NOT NULL,
	status           TEXT NOT NULL,
	format           TEXT NOT NULL,
	channels         INTEGER NOT NULL,
	sample_rate_hz   INTEGER NOT NULL,
	duration_seconds INTEGER NOT NULL,
	size_bytes       BIGINT NOT NULL,
	blob             TEXT NOT NULL,
	pauses           TEXT NOT NULL,
	consent          TEXT NOT NULL,
	started_by       TEXT NOT NULL,
	sha256           TEXT,
	legal_hold       BOOLEAN NOT NULL,
	retention_until  BIGINT,
	started_at       BIGINT NOT NULL,
	ended_at         BIGINT,
	available_at     BIGINT,
	error            TEXT,
	node             TEXT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX recordings_started ON recordings (org_id, started_at, id);
CREATE INDEX recordings_call ON recordings (org_id, call_id);
CREATE INDEX recordings_open ON recordings (node) WHERE status IN ('recording', 'paused', 'processing');

-- The schema after all migrations, in the order in which they make it. Written by make golden; do not edit.
CREATE TABLE orgs (
	id          TEXT PRIMARY KEY,
	parent_id   TEXT REFERENCES orgs (id),
	path        TEXT NOT NULL,
	live_id     TEXT UNIQUE REFERENCES orgs (id),
	environment TEXT NOT NULL,
	name        TEXT NOT NULL,
	plan        TEXT NOT NULL,
	status      TEXT NOT NULL,
	country     TEXT NOT NULL,
	timezone    TEXT NOT NULL,
	language    TEXT NOT NULL,
	settings    TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	updated_at  BIGINT NOT NULL
, limits TEXT NOT NULL DEFAULT '{}', suspend_mode TEXT, suspend_reason TEXT, suspended_at BIGINT, closed_at BIGINT, erase_after BIGINT, external_reference TEXT, admin_user_id TEXT);
CREATE INDEX orgs_path ON orgs (path);
CREATE TABLE idempotency (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	body_hash  TEXT NOT NULL,
	state      TEXT NOT NULL,
	status     INTEGER NOT NULL,
	answer     BLOB,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);
CREATE INDEX idempotency_created ON idempotency (created_at);
CREATE TABLE audit (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	at         BIGINT NOT NULL,
	operation  TEXT NOT NULL,
	target     TEXT NOT NULL,
	key_id     TEXT NOT NULL,
	user_id    TEXT,
	source     TEXT NOT NULL,
	request_id TEXT NOT NULL, key_name TEXT NOT NULL DEFAULT '', credential TEXT NOT NULL DEFAULT 'standard', record_id TEXT, status INTEGER NOT NULL DEFAULT 200, code TEXT, actor_org_id TEXT, on_behalf_of TEXT, client TEXT, scopes TEXT,
	PRIMARY KEY (org_id, id)
);
CREATE TABLE events (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	sequence    BIGINT,
	kind        TEXT NOT NULL,
	call_id     TEXT,
	audience    TEXT NOT NULL,
	body        TEXT NOT NULL,
	occurred_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);
CREATE INDEX events_open ON events (id) WHERE sequence IS NULL;
CREATE INDEX events_call ON events (org_id, call_id);
CREATE TABLE event_sequences (
	org_id TEXT PRIMARY KEY REFERENCES orgs (id),
	last   BIGINT NOT NULL
);
CREATE TABLE jobs (
	id           TEXT PRIMARY KEY,
	org_id       TEXT NOT NULL,
	queue        TEXT NOT NULL,
	lane         TEXT NOT NULL,
	kind         TEXT NOT NULL,
	state        INTEGER NOT NULL,
	run_at       BIGINT NOT NULL,
	attempt      INTEGER NOT NULL,
	max_attempts INTEGER NOT NULL,
	unique_key   TEXT,
	order_key    TEXT,
	args         TEXT NOT NULL,
	lease_until  BIGINT,
	worker       TEXT,
	last_error   TEXT,
	created_at   BIGINT NOT NULL,
	finished_at  BIGINT
);
CREATE INDEX jobs_running ON jobs (lease_until) WHERE state = 1;
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE state >= 2;
CREATE TABLE users (
	org_id             TEXT NOT NULL REFERENCES orgs (id),
	id                 TEXT NOT NULL,
	email              TEXT NOT NULL,
	first_name         TEXT NOT NULL,
	last_name          TEXT NOT NULL,
	role               TEXT NOT NULL,
	status             TEXT NOT NULL,
	extension          TEXT,
	outbound_number_id TEXT,
	dnd                BOOLEAN NOT NULL,
	dnd_until          BIGINT,
	timezone           TEXT,
	language           TEXT,
	skills             TEXT NOT NULL,
	ring_strategy      TEXT NOT NULL,
	forward            TEXT NOT NULL,
	voicemail          TEXT NOT NULL,
	recording_mode     TEXT NOT NULL,
	created_at         BIGINT NOT NULL,
	updated_at         BIGINT NOT NULL,
	last_seen_at       BIGINT,
	PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX users_email ON users (org_id, lower(email)) WHERE status <> 'removed';
CREATE UNIQUE INDEX users_extension ON users (org_id, extension) WHERE extension IS NOT NULL;
CREATE TABLE api_keys (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	digest      TEXT NOT NULL UNIQUE,
	name        TEXT NOT NULL,
	kind        TEXT NOT NULL,
	environment TEXT NOT NULL,
	prefix      TEXT NOT NULL,
	hint        TEXT NOT NULL,
	scopes      TEXT NOT NULL,
	user_id     TEXT,
	allowed_ips TEXT NOT NULL,
	expires_at  BIGINT,
	last_used_at BIGINT,
	last_used_ip TEXT,
	created_by  TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	revoked_at  BIGINT,
	rotates_to  TEXT, role TEXT NOT NULL DEFAULT 'admin',
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE TABLE devices (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	id           TEXT NOT NULL,
	user_id      TEXT NOT NULL,
	name         TEXT NOT NULL,
	kind         TEXT NOT NULL,
	mac          TEXT,
	vendor       TEXT,
	model        TEXT,
	template_id  TEXT,
	username     TEXT NOT NULL UNIQUE,
	ha1_md5      BLOB NOT NULL,
	ha1_sha256   BLOB NOT NULL,
	digest       TEXT NOT NULL,
	transport    TEXT NOT NULL,
	srtp         TEXT NOT NULL,
	codecs       TEXT NOT NULL,
	line_keys    TEXT NOT NULL,
	status       TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL,
	rotated_at   BIGINT NOT NULL,
	last_seen_at BIGINT, location TEXT, lost_at BIGINT, session_id TEXT, token_generation BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE UNIQUE INDEX devices_id ON devices (id);
CREATE INDEX devices_user ON devices (org_id, user_id);
CREATE TABLE registrations (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	device_id     TEXT NOT NULL,
	id            TEXT NOT NULL,
	contact       TEXT NOT NULL,
	path          TEXT NOT NULL,
	source        TEXT NOT NULL,
	transport     TEXT NOT NULL,
	flow          BIGINT NOT NULL,
	instance      TEXT NOT NULL,
	call_id       TEXT NOT NULL,
	cseq          BIGINT NOT NULL,
	priority      INTEGER NOT NULL,
	user_agent    TEXT NOT NULL,
	registered_at BIGINT NOT NULL,
	expires_at    BIGINT NOT NULL, node TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (org_id, device_id, id),
	FOREIGN KEY (org_id, device_id) REFERENCES devices (org_id, id)
);
CREATE INDEX registrations_expiry ON registrations (expires_at);
CREATE TABLE trunks (
	org_id            TEXT NOT NULL REFERENCES orgs (id),
	id                TEXT NOT NULL,
	name              TEXT NOT NULL,
	kind              TEXT NOT NULL,
	host              TEXT NOT NULL,
	port              INTEGER NOT NULL,
	transport         TEXT NOT NULL,
	username          TEXT,
	password          BLOB,
	from_domain       TEXT,
	allowed_ips       TEXT NOT NULL,
	codecs            TEXT NOT NULL,
	srtp              TEXT NOT NULL,
	max_channels      INTEGER NOT NULL,
	calls_per_second  INTEGER NOT NULL,
	priority          INTEGER NOT NULL,
	prefix_rules      TEXT NOT NULL,
	caller_id_mode    TEXT NOT NULL,
	enabled           BOOLEAN NOT NULL,
	emergency_capable BOOLEAN NOT NULL,
	inbound_ips       TEXT NOT NULL,
	inbound_username  TEXT UNIQUE,
	inbound_password  BLOB,
	created_at        BIGINT NOT NULL,
	updated_at        BIGINT NOT NULL, direction TEXT NOT NULL DEFAULT 'both', foreign_numbers BOOLEAN NOT NULL DEFAULT FALSE, allow_refer BOOLEAN NOT NULL DEFAULT FALSE,
	PRIMARY KEY (org_id, id)
);
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
	announced_at     BIGINT, revision INTEGER NOT NULL DEFAULT 0, muted BOOLEAN NOT NULL DEFAULT FALSE, transfer TEXT, transferred_to TEXT, machine BOOLEAN, contact_id TEXT, contact TEXT, flow_version INTEGER, voicemail_id TEXT, disposition_label TEXT, disposition_by TEXT, disposition_at BIGINT,
	PRIMARY KEY (org_id, id)
);
CREATE INDEX calls_started ON calls (org_id, started_at, id);
CREATE INDEX calls_ended ON calls (org_id, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX calls_from ON calls (org_id, from_number, started_at, id);
CREATE INDEX calls_to ON calls (org_id, to_number, started_at, id);
CREATE INDEX calls_agent ON calls (org_id, agent_id, started_at, id) WHERE agent_id IS NOT NULL;
CREATE INDEX calls_missed ON calls (org_id, started_at, id) WHERE missed_reason IS NOT NULL;
CREATE INDEX calls_live ON calls (org_id, started_at) WHERE ended_at IS NULL;
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
	end_reason  TEXT, srtp BOOLEAN NOT NULL DEFAULT FALSE, sip_status INTEGER, quality TEXT, talk_seconds INTEGER, hold_seconds INTEGER,
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
	node             TEXT NOT NULL, missing_ms INTEGER NOT NULL DEFAULT 0, redactions TEXT NOT NULL DEFAULT '[]', redaction TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX recordings_started ON recordings (org_id, started_at, id);
CREATE INDEX recordings_call ON recordings (org_id, call_id);
CREATE INDEX recordings_open ON recordings (node) WHERE status IN ('recording', 'paused', 'processing');
CREATE INDEX calls_from_ended ON calls (org_id, from_number, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX calls_to_ended ON calls (org_id, to_number, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX calls_agent_ended ON calls (org_id, agent_id, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE TABLE transcripts (
	org_id           TEXT NOT NULL,
	id               TEXT NOT NULL,
	call_id          TEXT NOT NULL,
	status           TEXT NOT NULL,
	language         TEXT NOT NULL,
	engine           TEXT NOT NULL,
	duration_seconds INTEGER NOT NULL,
	word_count       INTEGER NOT NULL,
	text             TEXT NOT NULL,
	segments         TEXT NOT NULL,
	skipped_reason   TEXT,
	error            TEXT,
	created_at       BIGINT NOT NULL,
	completed_at     BIGINT, redactions TEXT NOT NULL DEFAULT '[]',
	PRIMARY KEY (org_id, id),
	UNIQUE (org_id, call_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX transcripts_created ON transcripts (org_id, created_at, id);
CREATE TABLE summaries (
	org_id           TEXT NOT NULL,
	call_id          TEXT NOT NULL,
	status           TEXT NOT NULL,
	note             TEXT NOT NULL,
	language         TEXT NOT NULL,
	error            TEXT,
	embedding        TEXT NOT NULL,
	embedding_model  TEXT NOT NULL,
	embedding_size   INTEGER NOT NULL,
	created_at       BIGINT NOT NULL,
	announced_at     BIGINT,
	PRIMARY KEY (org_id, call_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE TABLE memory_calls (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	call_id      TEXT NOT NULL,
	phone        TEXT NOT NULL,
	at           BIGINT NOT NULL,
	direction    TEXT NOT NULL,
	status       TEXT NOT NULL,
	talk_seconds INTEGER NOT NULL,
	agent_id     TEXT,
	agent_name   TEXT,
	queue_id     TEXT,
	contact_id   TEXT,
	recording_id TEXT,
	tags         TEXT NOT NULL,
	summary      TEXT NOT NULL,
	outcome      TEXT NOT NULL,
	sentiment    TEXT,
	topics       TEXT NOT NULL,
	action_items TEXT NOT NULL,
	PRIMARY KEY (org_id, call_id)
);
CREATE INDEX memory_calls_phone ON memory_calls (org_id, phone, at);
CREATE INDEX memory_calls_at ON memory_calls (org_id, at);
CREATE TABLE memory_items (
	org_id   TEXT NOT NULL REFERENCES orgs (id),
	key      BIGINT NOT NULL,
	id       TEXT NOT NULL,
	call_id  TEXT NOT NULL,
	kind     TEXT NOT NULL,
	start_ms INTEGER,
	end_ms   INTEGER,
	text     TEXT NOT NULL,
	PRIMARY KEY (org_id, key),
	FOREIGN KEY (org_id, call_id) REFERENCES memory_calls (org_id, call_id) ON DELETE CASCADE
);
CREATE INDEX memory_items_call ON memory_items (org_id, call_id);
CREATE TABLE memory_vectors (
	org_id    TEXT NOT NULL REFERENCES orgs (id),
	key       BIGINT NOT NULL,
	phone     TEXT NOT NULL,
	at        BIGINT NOT NULL,
	kind      TEXT NOT NULL,
	direction TEXT NOT NULL,
	agent_id  TEXT,
	queue_id  TEXT,
	model     TEXT NOT NULL,
	vector    BLOB NOT NULL,
	terms     BLOB NOT NULL,
	PRIMARY KEY (org_id, key),
	FOREIGN KEY (org_id, key) REFERENCES memory_items (org_id, key) ON DELETE CASCADE
);
CREATE INDEX memory_vectors_phone ON memory_vectors (org_id, phone, at);
CREATE INDEX memory_vectors_at ON memory_vectors (org_id, at);
CREATE TABLE event_turn (
	id    INTEGER PRIMARY KEY,
	taken BIGINT NOT NULL
);
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
	deleted_at           BIGINT, fail_times INTEGER NOT NULL DEFAULT 0, fail_status INTEGER NOT NULL DEFAULT 0, holder TEXT, user_id TEXT,
	PRIMARY KEY (org_id, id)
);
CREATE TABLE webhook_versions (
	org_id  TEXT PRIMARY KEY REFERENCES orgs (id),
	version TEXT NOT NULL
);
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
CREATE INDEX jobs_order ON jobs (order_key, id) WHERE state < 2 AND order_key IS NOT NULL;
CREATE UNIQUE INDEX jobs_unique ON jobs (unique_key) WHERE state < 2 AND unique_key IS NOT NULL;
CREATE TABLE audio (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	name        TEXT NOT NULL,
	kind        TEXT NOT NULL,
	source      TEXT NOT NULL,
	text        TEXT,
	voice       TEXT,
	language    TEXT,
	duration_ms BIGINT NOT NULL,
	format      TEXT NOT NULL,
	size_bytes  BIGINT NOT NULL,
	blob        TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);
CREATE TABLE monitors (
	org_id        TEXT NOT NULL,
	id            TEXT NOT NULL,
	call_id       TEXT NOT NULL,
	supervisor_id TEXT NOT NULL,
	mode          TEXT NOT NULL,
	status        TEXT NOT NULL,
	started_at    BIGINT NOT NULL,
	ended_at      BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX monitors_call ON monitors (org_id, call_id);
CREATE TABLE call_dialogs (
	org_id  TEXT NOT NULL,
	call_id TEXT NOT NULL,
	node    TEXT NOT NULL,
	state   TEXT NOT NULL,
	dialogs TEXT NOT NULL,
	PRIMARY KEY (org_id, call_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE TABLE "call_timelines" (
	org_id     TEXT NOT NULL,
	call_id    TEXT NOT NULL,
	timeline      BLOB NOT NULL,
	written_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, call_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE TABLE notes (
	org_id      TEXT NOT NULL,
	id          TEXT NOT NULL,
	call_id     TEXT NOT NULL,
	body        TEXT NOT NULL,
	pinned      BOOLEAN NOT NULL,
	crm_sync    BOOLEAN NOT NULL,
	author_type TEXT NOT NULL,
	author_id   TEXT NOT NULL,
	author_name TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX notes_call ON notes (org_id, call_id, created_at, id);
CREATE TABLE tags (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	name        TEXT NOT NULL,
	color       TEXT,
	description TEXT,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX tags_name ON tags (org_id, name);
CREATE TABLE call_tags (
	org_id  TEXT NOT NULL,
	call_id TEXT NOT NULL,
	tag_id  TEXT NOT NULL,
	PRIMARY KEY (org_id, call_id, tag_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id),
	FOREIGN KEY (org_id, tag_id) REFERENCES tags (org_id, id)
);
CREATE INDEX call_tags_tag ON call_tags (org_id, tag_id, call_id);
CREATE TABLE switches (
	name       TEXT PRIMARY KEY,
	thrown     BOOLEAN NOT NULL,
	changed_at BIGINT NOT NULL
);
CREATE TABLE callbacks (
	org_id         TEXT NOT NULL REFERENCES orgs (id),
	id             TEXT NOT NULL,
	to_number      TEXT NOT NULL,
	user_id        TEXT NOT NULL,
	from_number    TEXT,
	reason         TEXT,
	scheduled_at   BIGINT NOT NULL,
	window_end     BIGINT NOT NULL,
	window_given   BOOLEAN NOT NULL,
	status         TEXT NOT NULL,
	call_id        TEXT,
	attempts       TEXT NOT NULL,
	max_attempts   INTEGER NOT NULL,
	origin         TEXT NOT NULL,
	origin_call_id TEXT,
	sandbox        BOOLEAN NOT NULL,
	created_at     BIGINT NOT NULL,
	finished_at    BIGINT, queue_id TEXT, flow_id TEXT,
	PRIMARY KEY (org_id, id)
);
CREATE INDEX callbacks_due ON callbacks (org_id, scheduled_at, id);
CREATE UNIQUE INDEX callbacks_dialing ON callbacks (org_id, to_number) WHERE status = 'dialing';
CREATE INDEX callbacks_call ON callbacks (org_id, call_id) WHERE call_id IS NOT NULL;
CREATE TABLE "call_timeline_ends" (
	org_id     TEXT NOT NULL,
	call_id    TEXT NOT NULL,
	timeline      BLOB NOT NULL,
	written_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, call_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX webhook_deliveries_call ON webhook_deliveries (org_id, call_id) WHERE call_id IS NOT NULL;
CREATE INDEX audit_at ON audit (org_id, at, id);
CREATE INDEX audit_old ON audit (at);
CREATE TABLE cdr_exports (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	status      TEXT NOT NULL,
	ask         TEXT NOT NULL,
	total       BIGINT NOT NULL,
	done        BIGINT NOT NULL,
	size_bytes  BIGINT NOT NULL,
	revision    BIGINT NOT NULL,
	error       TEXT,
	created_at  BIGINT NOT NULL,
	started_at  BIGINT,
	finished_at BIGINT,
	expires_at  BIGINT, user_id TEXT,
	PRIMARY KEY (org_id, id)
);
CREATE INDEX cdr_exports_status ON cdr_exports (org_id, status);
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (org_id, event_id);
CREATE INDEX orgs_parent ON orgs (parent_id, id) WHERE parent_id IS NOT NULL;
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
CREATE TABLE browser_tokens (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	device_id  TEXT NOT NULL,
	digest     TEXT NOT NULL UNIQUE,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, device_id) REFERENCES devices (org_id, id) ON DELETE CASCADE
);
CREATE INDEX browser_tokens_device ON browser_tokens (org_id, device_id);
CREATE INDEX browser_tokens_expiry ON browser_tokens (expires_at);
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
	finished_at BIGINT, unknown_columns TEXT NOT NULL DEFAULT '[]',
	PRIMARY KEY (org_id, id)
);
CREATE INDEX calls_contact ON calls (org_id, contact_id, started_at, id) WHERE contact_id IS NOT NULL;
CREATE TABLE crm_connections (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	id           TEXT NOT NULL,
	provider     TEXT NOT NULL,
	name         TEXT NOT NULL,
	enabled      BOOLEAN NOT NULL,
	priority     INTEGER NOT NULL,
	timeout_ms   INTEGER NOT NULL,
	settings     BLOB NOT NULL,
	field_map    TEXT NOT NULL,
	refreshed_at BIGINT,
	entries      INTEGER NOT NULL,
	refresh_error TEXT,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL, mark TEXT, holder TEXT,
	PRIMARY KEY (org_id, id)
);
CREATE TABLE crm_refs (
	org_id        TEXT NOT NULL,
	contact_id    TEXT NOT NULL,
	connection_id TEXT NOT NULL,
	external_id   TEXT NOT NULL,
	url           TEXT NOT NULL,
	status        TEXT NOT NULL,
	synced_at     BIGINT,
	error         TEXT, base TEXT,
	PRIMARY KEY (org_id, contact_id, connection_id),
	FOREIGN KEY (org_id, connection_id) REFERENCES crm_connections (org_id, id) ON DELETE CASCADE,
	FOREIGN KEY (org_id, contact_id) REFERENCES contacts (org_id, id) ON DELETE CASCADE
);
CREATE INDEX crm_refs_connection ON crm_refs (org_id, connection_id);
CREATE TABLE crm_syncs (
	org_id        TEXT NOT NULL,
	id            TEXT NOT NULL,
	connection_id TEXT NOT NULL,
	kind          TEXT NOT NULL,
	subject_id    TEXT NOT NULL,
	contact_id    TEXT,
	call_id       TEXT,
	status        TEXT NOT NULL,
	attempts      INTEGER NOT NULL,
	external_id   TEXT,
	error         TEXT,
	created_at    BIGINT NOT NULL,
	updated_at    BIGINT NOT NULL, written TEXT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, connection_id) REFERENCES crm_connections (org_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX crm_syncs_subject ON crm_syncs (org_id, subject_id, connection_id);
CREATE INDEX crm_syncs_connection ON crm_syncs (org_id, connection_id);
CREATE TABLE extensions (
	org_id    TEXT NOT NULL REFERENCES orgs (id),
	extension TEXT NOT NULL,
	owner_id  TEXT NOT NULL,
	PRIMARY KEY (org_id, extension)
);
CREATE UNIQUE INDEX extensions_owner ON extensions (org_id, owner_id);
CREATE TABLE queues (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	name       TEXT NOT NULL,
	extension  TEXT,
	settings   TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	removed_at BIGINT,
	PRIMARY KEY (org_id, id)
);
CREATE TABLE queue_members (
	org_id             TEXT NOT NULL REFERENCES orgs (id),
	queue_id           TEXT NOT NULL,
	user_id            TEXT NOT NULL,
	priority           INTEGER NOT NULL,
	skills             TEXT NOT NULL,
	signed_in          BOOLEAN NOT NULL,
	paused             BOOLEAN NOT NULL,
	pause_reason       TEXT,
	last_offered_at    BIGINT,
	last_call_ended_at BIGINT,
	added_at           BIGINT NOT NULL,
	PRIMARY KEY (org_id, queue_id, user_id),
	FOREIGN KEY (org_id, queue_id) REFERENCES queues (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE TABLE queue_entries (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	id            TEXT NOT NULL,
	queue_id      TEXT NOT NULL,
	call_id       TEXT NOT NULL,
	status        TEXT NOT NULL,
	priority      INTEGER NOT NULL,
	place         BIGINT NOT NULL,
	from_number   TEXT NOT NULL,
	contact       TEXT,
	skills        TEXT NOT NULL,
	entered_at    BIGINT NOT NULL,
	offers        INTEGER NOT NULL,
	agent_id      TEXT,
	connected_at  BIGINT,
	talk_seconds  INTEGER,
	callback      TEXT,
	exited_at     BIGINT,
	exit_reason   TEXT,
	node          TEXT NOT NULL,
	lease_until   BIGINT, retry_at BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, queue_id) REFERENCES queues (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE UNIQUE INDEX queue_entries_call ON queue_entries (org_id, call_id)
	WHERE status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing', 'connected');
CREATE INDEX queue_entries_line ON queue_entries (org_id, queue_id, priority DESC, place, id)
	WHERE status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing');
CREATE INDEX queue_entries_entered ON queue_entries (org_id, queue_id, entered_at, id);
CREATE INDEX queue_entries_node ON queue_entries (node)
	WHERE status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing', 'connected');
CREATE TABLE queue_offers (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	id           TEXT NOT NULL,
	queue_id     TEXT NOT NULL,
	entry_id     TEXT NOT NULL,
	call_id      TEXT NOT NULL,
	agent_id     TEXT NOT NULL,
	status       TEXT NOT NULL,
	node         TEXT NOT NULL,
	offered_at   BIGINT NOT NULL,
	lease_until  BIGINT NOT NULL,
	ring_seconds INTEGER NOT NULL,
	ended_at     BIGINT, wrapped_at BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, entry_id) REFERENCES queue_entries (org_id, id),
	FOREIGN KEY (org_id, agent_id) REFERENCES users (org_id, id)
);
CREATE UNIQUE INDEX queue_offers_agent ON queue_offers (org_id, agent_id) WHERE status IN ('offering', 'connected');
CREATE UNIQUE INDEX queue_offers_connected ON queue_offers (org_id, entry_id) WHERE status = 'connected';
CREATE INDEX queue_offers_entry ON queue_offers (org_id, entry_id);
CREATE INDEX queue_offers_history ON queue_offers (org_id, agent_id, offered_at);
CREATE INDEX queue_offers_lease ON queue_offers (lease_until) WHERE status = 'offering';
CREATE TABLE agents (
	org_id          TEXT NOT NULL REFERENCES orgs (id),
	user_id         TEXT NOT NULL,
	availability    TEXT NOT NULL,
	reason          TEXT,
	until_at        BIGINT,
	next            TEXT,
	wrap_up_until   BIGINT,
	missed_streak   INTEGER NOT NULL,
	paused_until    BIGINT,
	idle_since      BIGINT NOT NULL,
	status          TEXT NOT NULL,
	status_reason   TEXT,
	status_call_id  TEXT,
	status_since    BIGINT NOT NULL,
	status_until    BIGINT,
	due_at          BIGINT, wrap_up_call_id TEXT, ended_call_id TEXT,
	PRIMARY KEY (org_id, user_id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX agents_due ON agents (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE agent_spells (
	org_id   TEXT NOT NULL REFERENCES orgs (id),
	user_id  TEXT NOT NULL,
	since    BIGINT NOT NULL,
	id       TEXT NOT NULL,
	until_at BIGINT NOT NULL,
	status   TEXT NOT NULL,
	reason   TEXT,
	PRIMARY KEY (org_id, user_id, since, id)
);
CREATE INDEX agent_spells_ended ON agent_spells (until_at);
CREATE INDEX legs_open ON legs (org_id, user_id) WHERE ended_at IS NULL AND user_id IS NOT NULL;
CREATE INDEX calls_queue ON calls (org_id, queue_id, started_at, id) WHERE queue_id IS NOT NULL;
CREATE INDEX calls_flow ON calls (org_id, flow_id, started_at, id) WHERE flow_id IS NOT NULL;
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
CREATE TABLE "numbers" (
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
	released_at    BIGINT, account_id TEXT, status_detail TEXT, proven_at BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, trunk_id) REFERENCES trunks (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id),
	FOREIGN KEY (org_id, flow_id) REFERENCES flows (org_id, id),
	FOREIGN KEY (org_id, queue_id) REFERENCES queues (org_id, id)
);
CREATE UNIQUE INDEX numbers_sandbox ON numbers (org_id, number) WHERE status NOT IN ('released', 'failed', 'port_failed');
CREATE INDEX numbers_user ON numbers (org_id, user_id);
CREATE INDEX numbers_trunk ON numbers (org_id, trunk_id);
CREATE INDEX numbers_flow ON numbers (org_id, flow_id) WHERE flow_id IS NOT NULL;
CREATE INDEX numbers_queue ON numbers (org_id, queue_id) WHERE queue_id IS NOT NULL;
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
CREATE TABLE voicemails (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	id            TEXT NOT NULL,
	call_id       TEXT NOT NULL,
	mailbox_type  TEXT NOT NULL,
	mailbox_id    TEXT NOT NULL,
	from_number   TEXT NOT NULL,
	contact       TEXT,
	received_at   BIGINT NOT NULL,
	duration_ms   BIGINT NOT NULL,
	size_bytes    BIGINT NOT NULL,
	sha256        TEXT NOT NULL,
	blob          TEXT NOT NULL,
	status        TEXT NOT NULL,
	transcript_id TEXT,
	text          TEXT,
	ai_summary    TEXT,
	urgency       TEXT,
	assignee_id   TEXT,
	read_at       BIGINT,
	updated_at    BIGINT NOT NULL, transcript_status TEXT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id),
	FOREIGN KEY (org_id, assignee_id) REFERENCES users (org_id, id)
);
CREATE INDEX voicemails_received ON voicemails (org_id, received_at, id);
CREATE INDEX voicemails_mailbox ON voicemails (org_id, mailbox_id, received_at, id);
CREATE INDEX voicemails_call ON voicemails (org_id, call_id);
CREATE INDEX queue_entries_calls ON queue_entries (org_id, call_id);
CREATE INDEX recordings_retention ON recordings (retention_until) WHERE retention_until IS NOT NULL AND legal_hold = FALSE;
CREATE TABLE erasures (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	id           TEXT NOT NULL,
	phone        BLOB,
	phone_hint   TEXT NOT NULL,
	reason       TEXT,
	status       TEXT NOT NULL,
	items        INTEGER NOT NULL,
	requested_by TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	finished_at  BIGINT,
	PRIMARY KEY (org_id, id)
);
CREATE TABLE call_counts (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	dimension     TEXT NOT NULL,
	at            BIGINT NOT NULL,
	key           TEXT NOT NULL,
	total         INTEGER NOT NULL,
	inbound       INTEGER NOT NULL,
	outbound      INTEGER NOT NULL,
	internal      INTEGER NOT NULL,
	answered      INTEGER NOT NULL,
	missed        INTEGER NOT NULL,
	abandoned     INTEGER NOT NULL,
	voicemail     INTEGER NOT NULL,
	queued        INTEGER NOT NULL,
	in_time       INTEGER NOT NULL,
	ring_seconds  BIGINT NOT NULL,
	queue_seconds BIGINT NOT NULL,
	talk_seconds  BIGINT NOT NULL,
	hold_seconds  BIGINT NOT NULL,
	callers       BLOB NOT NULL,
	PRIMARY KEY (org_id, dimension, at, key)
);
CREATE TABLE call_counted (
	org_id  TEXT PRIMARY KEY REFERENCES orgs (id),
	until   BIGINT NOT NULL,
	version BIGINT NOT NULL
);
CREATE TABLE conversations (
	org_id          TEXT NOT NULL REFERENCES orgs (id),
	id              TEXT NOT NULL,
	number_id       TEXT,
	org_number      TEXT NOT NULL,
	peer_number     TEXT NOT NULL,
	status          TEXT NOT NULL,
	assignee_id     TEXT,
	unread_count    INTEGER NOT NULL,
	tags            TEXT NOT NULL,
	last_message    TEXT NOT NULL,
	last_message_at BIGINT NOT NULL,
	created_at      BIGINT NOT NULL,
	updated_at      BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX conversations_pair ON conversations (org_id, org_number, peer_number);
CREATE INDEX conversations_last ON conversations (org_id, last_message_at, id);
CREATE INDEX conversations_peer ON conversations (org_id, peer_number);
CREATE TABLE messages (
	org_id          TEXT NOT NULL,
	id              TEXT NOT NULL,
	conversation_id TEXT NOT NULL,
	direction       TEXT NOT NULL,
	status          TEXT NOT NULL,
	from_number     TEXT NOT NULL,
	to_number       TEXT NOT NULL,
	body            TEXT NOT NULL,
	segments        INTEGER NOT NULL,
	encoding        TEXT NOT NULL,
	media           TEXT NOT NULL,
	user_id         TEXT,
	source          TEXT NOT NULL,
	error           TEXT,
	scheduled_at    BIGINT,
	created_at      BIGINT NOT NULL,
	sent_at         BIGINT,
	delivered_at    BIGINT,
	metadata        TEXT NOT NULL,
	sandbox         BOOLEAN NOT NULL,
	carrier         TEXT NOT NULL,
	reference       TEXT,
	automatic       BOOLEAN NOT NULL,
	forwarded       TEXT, origin TEXT, sending_since BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, conversation_id) REFERENCES conversations (org_id, id)
);
CREATE INDEX messages_created ON messages (org_id, created_at, id);
CREATE INDEX messages_conversation ON messages (org_id, conversation_id, created_at, id);
CREATE UNIQUE INDEX messages_reference ON messages (org_id, carrier, reference) WHERE reference IS NOT NULL;
CREATE TABLE opt_outs (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	digest     TEXT NOT NULL,
	number_id  TEXT NOT NULL,
	id         TEXT NOT NULL,
	phone      TEXT,
	source     TEXT NOT NULL,
	keyword    TEXT,
	message_id TEXT,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, digest, number_id)
);
CREATE INDEX opt_outs_created ON opt_outs (org_id, created_at, id);
CREATE UNIQUE INDEX messages_origin ON messages (org_id, origin) WHERE origin IS NOT NULL;
CREATE INDEX recordings_stored ON recordings (org_id, size_bytes) WHERE size_bytes > 0 AND status <> 'deleted';
CREATE INDEX voicemails_stored ON voicemails (org_id, size_bytes) WHERE status <> 'deleted';
CREATE INDEX audio_stored ON audio (org_id, size_bytes);
CREATE INDEX messages_from ON messages (org_id, from_number, created_at, id);
CREATE INDEX messages_to ON messages (org_id, to_number, created_at, id);
CREATE INDEX voicemails_from ON voicemails (org_id, from_number, received_at, id);
CREATE TABLE memory_facts (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	phone      TEXT NOT NULL,
	id         TEXT NOT NULL,
	text       TEXT NOT NULL,
	created_by TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT, key BIGINT, model TEXT NOT NULL DEFAULT '', vector BLOB, terms BLOB, kind TEXT NOT NULL DEFAULT 'fact', call_id TEXT, contact_id TEXT,
	PRIMARY KEY (org_id, phone, id)
);
CREATE UNIQUE INDEX memory_facts_id ON memory_facts (org_id, id);
CREATE INDEX memory_facts_expires ON memory_facts (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memory_items_id ON memory_items (org_id, id);
CREATE TABLE provisionings (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	device_id     TEXT NOT NULL,
	digest        TEXT NOT NULL UNIQUE,
	status        TEXT NOT NULL,
	created_at    BIGINT NOT NULL,
	open_until    BIGINT NOT NULL,
	bound_at      BIGINT,
	user_agent    TEXT,
	login         BLOB,
	password      BLOB,
	last_fetch_at BIGINT,
	PRIMARY KEY (org_id, device_id),
	FOREIGN KEY (org_id, device_id) REFERENCES devices (org_id, id) ON DELETE CASCADE
);
CREATE INDEX provisionings_open ON provisionings (open_until);
CREATE INDEX queue_offers_call ON queue_offers (org_id, call_id) WHERE status IN ('offering', 'connected');
CREATE INDEX callbacks_origin ON callbacks (org_id, origin_call_id) WHERE origin = 'queue';
CREATE TABLE mailbox_pins (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	user_id      TEXT NOT NULL,
	salt         TEXT NOT NULL,
	digest       TEXT NOT NULL,
	wrong        INTEGER NOT NULL,
	locks        INTEGER NOT NULL,
	locked_until BIGINT,
	updated_at   BIGINT NOT NULL, outside_wrong INTEGER NOT NULL DEFAULT 0, outside_locks INTEGER NOT NULL DEFAULT 0, outside_locked_until BIGINT,
	PRIMARY KEY (org_id, user_id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX voicemails_assignee ON voicemails (org_id, assignee_id, received_at, id) WHERE assignee_id IS NOT NULL;
CREATE TABLE voicemail_drafts (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	call_id    TEXT NOT NULL,
	mailbox_id TEXT NOT NULL,
	node       TEXT NOT NULL,
	begun_at   BIGINT NOT NULL,
	blob       TEXT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE TABLE number_accounts (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	provider   TEXT NOT NULL,
	trunk_id   TEXT NOT NULL,
	settings   BLOB NOT NULL,
	enabled    BOOLEAN NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, trunk_id) REFERENCES trunks (org_id, id)
);
CREATE UNIQUE INDEX number_accounts_provider ON number_accounts (org_id, provider);
CREATE TABLE oauth_grants (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	id            TEXT NOT NULL,
	user_id       TEXT NOT NULL,
	client_id     TEXT NOT NULL,
	client_name   TEXT NOT NULL,
	audience      TEXT NOT NULL,
	scopes        TEXT NOT NULL,
	created_at    BIGINT NOT NULL,
	last_used_at  BIGINT,
	last_used_ip  TEXT,
	revoked_at    BIGINT,
	step_up_until BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX oauth_grants_user ON oauth_grants (org_id, user_id);
CREATE TABLE oauth_tokens (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	digest     TEXT NOT NULL UNIQUE,
	grant_id   TEXT NOT NULL,
	kind       TEXT NOT NULL,
	audience   TEXT NOT NULL,
	scopes     TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	spent_at   BIGINT,
	next       TEXT,
	PRIMARY KEY (org_id, digest),
	FOREIGN KEY (org_id, grant_id) REFERENCES oauth_grants (org_id, id) ON DELETE CASCADE
);
CREATE INDEX oauth_tokens_grant ON oauth_tokens (org_id, grant_id);
CREATE INDEX oauth_tokens_expiry ON oauth_tokens (expires_at);
CREATE TABLE oauth_codes (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	digest       TEXT NOT NULL UNIQUE,
	user_id      TEXT NOT NULL,
	client_id    TEXT NOT NULL,
	client_name  TEXT NOT NULL,
	redirect_uri TEXT NOT NULL,
	challenge    TEXT NOT NULL,
	audience     TEXT NOT NULL,
	scopes       TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	expires_at   BIGINT NOT NULL,
	grant_id     TEXT,
	PRIMARY KEY (org_id, digest),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX oauth_codes_expiry ON oauth_codes (expires_at);
CREATE TABLE oauth_consents (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	user_id    TEXT NOT NULL,
	client_id  TEXT NOT NULL,
	audience   TEXT NOT NULL,
	scopes     TEXT NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, user_id, client_id, audience),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE TABLE oauth_clients (
	id            TEXT PRIMARY KEY,
	name          TEXT NOT NULL,
	uri           TEXT NOT NULL,
	redirect_uris TEXT NOT NULL,
	created_at    BIGINT NOT NULL,
	used_at       BIGINT NOT NULL
);
CREATE INDEX oauth_clients_used ON oauth_clients (used_at);
CREATE TABLE account_logins (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	user_id    TEXT NOT NULL,
	hash       TEXT NOT NULL,
	changed_at BIGINT NOT NULL,
	totp       BLOB,
	totp_new   BLOB,
	totp_step  BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (org_id, user_id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE TABLE account_recovery (
	org_id  TEXT NOT NULL REFERENCES orgs (id),
	user_id TEXT NOT NULL,
	digest  TEXT NOT NULL,
	PRIMARY KEY (org_id, user_id, digest),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE TABLE account_sessions (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	user_id    TEXT NOT NULL,
	digest     TEXT NOT NULL UNIQUE,
	half       BOOLEAN NOT NULL,
	created_at BIGINT NOT NULL,
	used_at    BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	source     TEXT NOT NULL,
	agent      TEXT NOT NULL, confirmed_at BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX account_sessions_user ON account_sessions (org_id, user_id);
CREATE INDEX account_sessions_expiry ON account_sessions (expires_at);
CREATE TABLE account_links (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	digest     TEXT NOT NULL UNIQUE,
	user_id    TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, digest),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE TABLE login_failures (
	digest       TEXT PRIMARY KEY,
	failures     INTEGER NOT NULL,
	failed_at    BIGINT NOT NULL,
	locked_until BIGINT
);
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
CREATE TABLE message_parts (
	org_id     TEXT NOT NULL,
	carrier    TEXT NOT NULL,
	remote_id  TEXT NOT NULL,
	message_id TEXT,
	part       INTEGER NOT NULL,
	status     TEXT NOT NULL,
	error      TEXT,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, carrier, remote_id)
);
CREATE INDEX message_parts_message ON message_parts (org_id, message_id, part);
CREATE INDEX message_parts_early ON message_parts (created_at) WHERE message_id IS NULL;
CREATE INDEX messages_unsettled ON messages (org_id, carrier, status) WHERE status IN ('queued', 'sending');
CREATE INDEX message_parts_unclaimed ON message_parts (org_id, carrier) WHERE message_id IS NULL;
CREATE INDEX message_parts_created ON message_parts (created_at);
CREATE TABLE assistant_turns (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	call_id       TEXT NOT NULL,
	id            TEXT NOT NULL,
	at            BIGINT NOT NULL,
	heard         TEXT NOT NULL,
	said          TEXT NOT NULL,
	interrupted   BOOLEAN NOT NULL,
	engine        TEXT NOT NULL,
	tools         TEXT NOT NULL,
	understood_ms INTEGER,
	endpoint_ms   INTEGER,
	thought_ms    INTEGER,
	voiced_ms     INTEGER,
	audio_ms      INTEGER,
	PRIMARY KEY (org_id, call_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX assistant_turns_at ON assistant_turns (org_id, at);
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
CREATE TABLE flow_turns (
	org_id  TEXT NOT NULL REFERENCES orgs (id),
	flow_id TEXT NOT NULL,
	node    TEXT NOT NULL,
	taken   BIGINT NOT NULL,
	PRIMARY KEY (org_id, flow_id, node),
	FOREIGN KEY (org_id, flow_id) REFERENCES flows (org_id, id)
);
CREATE INDEX memory_facts_key ON memory_facts (org_id, key);
CREATE TABLE crm_grants (
	org_id        TEXT NOT NULL,
	connection_id TEXT NOT NULL,
	tokens        BLOB NOT NULL,
	expires_at    BIGINT,
	version       BIGINT NOT NULL,
	leased_until  BIGINT,
	refused       TEXT,
	PRIMARY KEY (org_id, connection_id),
	FOREIGN KEY (org_id, connection_id) REFERENCES crm_connections (org_id, id) ON DELETE CASCADE
);
CREATE TABLE crm_authorizations (
	org_id        TEXT NOT NULL,
	state         TEXT NOT NULL,
	connection_id TEXT NOT NULL,
	verifier      BLOB NOT NULL,
	asked_by      TEXT NOT NULL,
	expires_at    BIGINT NOT NULL, session TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (org_id, state),
	FOREIGN KEY (org_id, connection_id) REFERENCES crm_connections (org_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX crm_authorizations_state ON crm_authorizations (state);
CREATE TABLE assistant_words (
	org_id   TEXT NOT NULL REFERENCES orgs (id),
	call_id  TEXT NOT NULL,
	id       TEXT NOT NULL,
	talk     TEXT NOT NULL,
	speaker  TEXT NOT NULL,
	said     TEXT NOT NULL,
	began_at BIGINT NOT NULL,
	ended_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, call_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX assistant_words_at ON assistant_words (org_id, began_at);
CREATE INDEX memory_facts_call ON memory_facts (org_id, call_id) WHERE call_id IS NOT NULL;
CREATE INDEX memory_facts_contact ON memory_facts (org_id, contact_id) WHERE contact_id IS NOT NULL;
CREATE INDEX memory_calls_contact ON memory_calls (org_id, contact_id, at) WHERE contact_id IS NOT NULL;
CREATE INDEX events_sequence ON events (org_id, sequence) WHERE sequence IS NOT NULL;
CREATE INDEX jobs_ready ON jobs (queue, org_id, lane, run_at, id) WHERE state = 0 AND lane <> '';
CREATE INDEX jobs_due ON jobs (queue, run_at, id, lane, order_key, state, org_id) WHERE state = 0;
CREATE TABLE trunk_networks (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	network    TEXT NOT NULL,
	proof      TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, network)
);
CREATE INDEX numbers_dialled ON numbers (number) WHERE status NOT IN ('released', 'failed', 'port_failed') AND provider <> 'sandbox';
CREATE INDEX legs_user ON legs (org_id, user_id, call_id) WHERE user_id IS NOT NULL;
CREATE INDEX calls_user ON calls (org_id, user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX queue_members_user ON queue_members (org_id, user_id, queue_id);
CREATE TABLE installation (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
);
CREATE TABLE nodes (
	id          TEXT PRIMARY KEY,
	epoch       BIGINT NOT NULL,
	state       TEXT NOT NULL,
	version     TEXT NOT NULL,
	joined_at   BIGINT NOT NULL,
	lease_until BIGINT NOT NULL
);
CREATE TABLE node_file_removals (
	node         TEXT NOT NULL,
	name         TEXT NOT NULL,
	requested_at BIGINT NOT NULL,
	PRIMARY KEY (node, name)
);
CREATE INDEX registrations_node ON registrations (node) WHERE flow <> 0;
CREATE TABLE trunk_lines (
	trunk_id   TEXT PRIMARY KEY,
	node       TEXT NOT NULL,
	status     TEXT NOT NULL DEFAULT '',
	expires_at BIGINT,
	error      TEXT
);
CREATE TABLE user_preferences (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	user_id     TEXT NOT NULL,
	preferences TEXT NOT NULL,
	updated_at  BIGINT NOT NULL,
	PRIMARY KEY (org_id, user_id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE TABLE voicemail_assignees (
	org_id  TEXT NOT NULL REFERENCES orgs (id),
	user_id TEXT NOT NULL,
	PRIMARY KEY (org_id, user_id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX devices_lost ON devices (org_id, user_id) WHERE lost_at IS NOT NULL;
CREATE TABLE person_exports (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	id           TEXT NOT NULL,
	phone        BLOB,
	phone_hint   TEXT NOT NULL,
	reason       TEXT,
	status       TEXT NOT NULL,
	items        BIGINT NOT NULL,
	parts_total  INTEGER NOT NULL,
	parts_done   INTEGER NOT NULL,
	size_bytes   BIGINT NOT NULL,
	revision     INTEGER NOT NULL,
	error        TEXT,
	requested_by TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	started_at   BIGINT,
	finished_at  BIGINT,
	expires_at   BIGINT,
	PRIMARY KEY (org_id, id)
);
CREATE INDEX devices_session ON devices (org_id, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX call_timelines_written ON call_timelines (written_at);
CREATE INDEX call_timeline_ends_written ON call_timeline_ends (written_at);
INSERT INTO event_turn (id, taken) VALUES (1, 0);

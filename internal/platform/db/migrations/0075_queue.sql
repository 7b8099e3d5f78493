-- Extensions that are taken, whoever has them: people and queues share one plan.
CREATE TABLE extensions (
	org_id    TEXT NOT NULL REFERENCES orgs (id),
	extension TEXT NOT NULL,
	owner_id  TEXT NOT NULL,
	PRIMARY KEY (org_id, extension)
);
CREATE UNIQUE INDEX extensions_owner ON extensions (org_id, owner_id);
INSERT INTO extensions (org_id, extension, owner_id) SELECT org_id, extension, id FROM users WHERE extension IS NOT NULL;

-- Queues. A removed one stays for history; its extension becomes free. How callers are treated is in settings.
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

-- Who answers a queue. They stay signed in whatever becomes of the queue's settings.
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
CREATE INDEX queue_members_user ON queue_members (org_id, user_id);

-- Callers of queues, one row per visit. place orders callers of the same priority: when they entered, unless they were moved.
-- node and lease_until: which node holds the caller, and until when it must have said so again.
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
	lease_until   BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, queue_id) REFERENCES queues (org_id, id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
-- A call stands in one queue at a time.
CREATE UNIQUE INDEX queue_entries_call ON queue_entries (org_id, call_id)
	WHERE status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing', 'connected');
CREATE INDEX queue_entries_line ON queue_entries (org_id, queue_id, priority DESC, place, id)
	WHERE status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing');
CREATE INDEX queue_entries_entered ON queue_entries (org_id, queue_id, entered_at, id);
CREATE INDEX queue_entries_node ON queue_entries (node)
	WHERE status IN ('waiting', 'offering', 'callback_pending', 'callback_dialing', 'connected');

-- An agent who is rung for a caller. An agent has one open offer at most, whatever queues they answer; of all who are rung for
-- a caller one is connected at most. An offer is a lease: past lease_until it is over, whoever made it.
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
	ended_at     BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, entry_id) REFERENCES queue_entries (org_id, id),
	FOREIGN KEY (org_id, agent_id) REFERENCES users (org_id, id)
);
CREATE UNIQUE INDEX queue_offers_agent ON queue_offers (org_id, agent_id) WHERE status IN ('offering', 'connected');
CREATE UNIQUE INDEX queue_offers_connected ON queue_offers (org_id, entry_id) WHERE status = 'connected';
CREATE INDEX queue_offers_entry ON queue_offers (org_id, entry_id);
CREATE INDEX queue_offers_history ON queue_offers (org_id, agent_id, offered_at);
CREATE INDEX queue_offers_lease ON queue_offers (lease_until) WHERE status = 'offering';

-- What agents chose, and what was told of them last. Do-not-disturb is in users, for it is one truth with PUT /users/{id}/dnd.
-- next_*: a choice that takes effect after the call. due_at: when the presence changes by itself.
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
	due_at          BIGINT,
	PRIMARY KEY (org_id, user_id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX agents_due ON agents (due_at) WHERE due_at IS NOT NULL;

-- Past spells of presence, for reports.
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

-- Calls counted by quarters of an hour in which they began. key: a queue, an agent, a number, a direction, or '' for all calls.
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

-- How far an organisation's calls are counted: all that ended before. version rises with every quarter that is counted anew.
CREATE TABLE call_counted (
	org_id  TEXT PRIMARY KEY REFERENCES orgs (id),
	until   BIGINT NOT NULL,
	version BIGINT NOT NULL
);

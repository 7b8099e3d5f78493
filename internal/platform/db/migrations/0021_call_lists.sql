-- Lists of call detail records are in the order in which calls ended.
CREATE INDEX calls_from_ended ON calls (org_id, from_number, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX calls_to_ended ON calls (org_id, to_number, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX calls_agent_ended ON calls (org_id, agent_id, ended_at, id) WHERE ended_at IS NOT NULL;

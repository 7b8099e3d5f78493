-- How often a group of a flow was rung in turn: whose turn it is follows from that, whichever node rings.
CREATE TABLE flow_turns (
	org_id  TEXT NOT NULL REFERENCES orgs (id),
	flow_id TEXT NOT NULL,
	node    TEXT NOT NULL,
	taken   BIGINT NOT NULL,
	PRIMARY KEY (org_id, flow_id, node),
	FOREIGN KEY (org_id, flow_id) REFERENCES flows (org_id, id)
);

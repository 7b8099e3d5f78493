-- Child organisations, which partners manage. limits: what differs from the plan.
ALTER TABLE orgs ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';
ALTER TABLE orgs ADD COLUMN suspend_mode TEXT;
ALTER TABLE orgs ADD COLUMN suspend_reason TEXT;
ALTER TABLE orgs ADD COLUMN suspended_at BIGINT;
ALTER TABLE orgs ADD COLUMN closed_at BIGINT;
ALTER TABLE orgs ADD COLUMN erase_after BIGINT;
ALTER TABLE orgs ADD COLUMN external_reference TEXT;
ALTER TABLE orgs ADD COLUMN admin_user_id TEXT;
CREATE INDEX orgs_parent ON orgs (parent_id, id) WHERE parent_id IS NOT NULL;

-- A partner who acts in a child organisation is written down in both: in the child with whose credential it was, in the
-- partner's with where it was used.
ALTER TABLE audit ADD COLUMN actor_org_id TEXT;
ALTER TABLE audit ADD COLUMN on_behalf_of TEXT;

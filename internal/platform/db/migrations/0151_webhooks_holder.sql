-- Who subscribed with which scopes: an event goes to a webhook only while its subscriber may read it. NULL: from before, with every scope
-- of the plan. A CRM connection is given calls only while its maker may read them.
ALTER TABLE webhooks ADD COLUMN holder TEXT;
ALTER TABLE crm_connections ADD COLUMN holder TEXT;

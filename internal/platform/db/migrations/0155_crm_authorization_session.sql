-- An authorization belongs to the browser session that began it: '' until a signed-in person has opened its address.
ALTER TABLE crm_authorizations ADD COLUMN session TEXT NOT NULL DEFAULT '';

-- sending_since is when the carrier was given the message; NULL if that was before this column existed, or never.
ALTER TABLE messages ADD COLUMN sending_since BIGINT;

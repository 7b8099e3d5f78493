-- token_generation counts the ended browser sessions of a telephone. A connection that a token of an earlier generation
-- authorised is not accepted any more, whichever node has it.
ALTER TABLE devices ADD COLUMN token_generation BIGINT NOT NULL DEFAULT 0;

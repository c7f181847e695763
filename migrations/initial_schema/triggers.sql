-- Functions and the triggers of memories. Each trigger changes its own row and reads no other, so
-- it can run wherever that row is stored.

CREATE FUNCTION kemem_set_update_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.update_time := clock_timestamp();
    RETURN NEW;
END $$;

-- The text as a time, or null. PostgreSQL 15 cannot try a cast, so the text is checked first;
-- `app/memory/memories/filters.py` has the same expression.
CREATE FUNCTION kemem_timestamptz(value text) RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN CASE
    WHEN value !~ ('^[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9]'
        || '(:[0-5][0-9]([.][0-9]{1,6})?)?(Z|[+-](0[0-9]|1[0-5]):?[0-5][0-9])$')
        OR value ~ '^0000' THEN NULL
    WHEN CAST(substr(value, 9, 2) AS integer) NOT BETWEEN 1 AND extract(day FROM
        make_date(CAST(substr(value, 1, 4) AS integer), CAST(substr(value, 6, 2) AS integer), 1)
        + INTERVAL '1 month' - INTERVAL '1 day') THEN NULL
    ELSE CAST(value AS timestamptz)
END;

-- Uses, terms, vectors and codes are no change of what a memory says: search breaks ties by
-- `update_time`.
CREATE TRIGGER memories_update_time BEFORE UPDATE ON memories FOR EACH ROW
WHEN (
    OLD.version <> NEW.version
    OR (
        OLD.use_count = NEW.use_count
        AND OLD.last_used_at IS NOT DISTINCT FROM NEW.last_used_at
        AND OLD.embedding_model = NEW.embedding_model
        AND OLD.analyser IS NOT DISTINCT FROM NEW.analyser
        AND OLD.code IS NOT DISTINCT FROM NEW.code
    )
)
EXECUTE FUNCTION kemem_set_update_time();

-- A merge says nothing new of the entity, and leaves no trace when it is undone.
CREATE TRIGGER graph_entities_update_time BEFORE UPDATE ON graph_entities FOR EACH ROW
WHEN (OLD.merged_into IS NOT DISTINCT FROM NEW.merged_into)
EXECUTE FUNCTION kemem_set_update_time();

-- A code belongs to the vector it was made from.
CREATE FUNCTION kemem_clear_code() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.code := NULL;
    RETURN NEW;
END $$;

CREATE TRIGGER memories_code BEFORE UPDATE OF embedding, embedding_model ON memories
FOR EACH ROW WHEN (OLD.code IS NOT NULL)
EXECUTE FUNCTION kemem_clear_code();

-- Terms belong to the words they were read from: an update of the words clears them, unless the
-- same statement writes `analyser`, which says that the new words were read. PostgreSQL fires the
-- three triggers in the order of their names: the first marks a written `analyser` by its sign,
-- the second clears the terms where there is no mark, the third takes the mark away.
CREATE FUNCTION kemem_turn_analyser() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.analyser := -NEW.analyser;
    RETURN NEW;
END $$;

CREATE FUNCTION kemem_clear_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.terms := NULL;
    NEW.term_count := NULL;
    NEW.word_count := NULL;
    NEW.is_question := NULL;
    NEW.has_time := NULL;
    NEW.analyser := NULL;
    RETURN NEW;
END $$;

CREATE TRIGGER memories_read_1 BEFORE UPDATE OF analyser ON memories
FOR EACH ROW EXECUTE FUNCTION kemem_turn_analyser();

CREATE TRIGGER memories_read_2 BEFORE UPDATE OF content, metadata, valid_from ON memories
FOR EACH ROW
WHEN (
    NEW.analyser > 0
    AND (OLD.content, OLD.metadata, OLD.valid_from)
        IS DISTINCT FROM (NEW.content, NEW.metadata, NEW.valid_from)
)
EXECUTE FUNCTION kemem_clear_terms();

CREATE TRIGGER memories_read_3 BEFORE UPDATE OF analyser ON memories
FOR EACH ROW WHEN (NEW.analyser < 0)
EXECUTE FUNCTION kemem_turn_analyser();

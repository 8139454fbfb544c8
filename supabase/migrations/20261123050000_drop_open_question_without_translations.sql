-- Its successor also returns the kept translations of the question. No release has called this one.
drop function if exists rag.open_question(
    text, text, uuid, uuid[], uuid, uuid, jsonb, boolean, boolean, int, int, int);

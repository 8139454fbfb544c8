-- Its successor takes the question in several languages. rag.hybrid_search, whose only use it was, no longer calls it.
drop function if exists rag.lexical_queries(text, text, bigint[], bigint);

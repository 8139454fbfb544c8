-- The worker never asks who is signed in. On a hosted project the first migration could not grant this either: the role that
-- migrates may not hand on rights to the schema `auth`.
revoke usage on schema auth from rag_worker;

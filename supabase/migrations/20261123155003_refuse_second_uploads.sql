-- When rag.refuse_second_upload runs: before an object of ours gets its bytes, or others.
create trigger rag_refuse_second_upload before insert or update of version on storage.objects
    for each row when (new.bucket_id = 'documents') execute function rag.refuse_second_upload();

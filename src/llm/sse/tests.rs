use super::*;

async fn read(chunks: Vec<Vec<u8>>) -> Vec<Result<SseEvent, SseError>> {
    events(stream::iter(chunks.into_iter().map(|chunk| Ok(Bytes::from(chunk))))).collect().await
}

fn event(name: Option<&str>, data: &str, unfinished: bool) -> Result<SseEvent, SseError> {
    Ok(SseEvent { name: name.map(str::to_owned), data: data.to_owned(), unfinished })
}

#[tokio::test]
async fn events_are_parsed_in_every_notation() {
    let cases: [(&str, Vec<Result<SseEvent, SseError>>); 9] = [
        ("event: a\ndata: 1\n\ndata: 2\n\n", vec![event(Some("a"), "1", false), event(None, "2", false)]),
        ("data:1\r\n\r\ndata: 2\r\rdata: 3\n\n", vec![event(None, "1", false), event(None, "2", false), event(None, "3", false)]),
        ("\u{feff}data: 1\n\n", vec![event(None, "1", false)]),
        ("\n\n\n: note\n\nid: 7\nretry: 5\nfoo: bar\ndata: a\ndata: b\n\n", vec![event(None, "a\nb", false)]),
        ("data\n\n", vec![event(None, "", false)]),
        ("\n \n  data: no field\n\ndata: 1\n\n", vec![event(None, "1", false)]),
        ("data: 1", vec![event(None, "1", true)]),
        ("event: only a name\n\n", vec![]),
        ("", vec![]),
    ];
    for (text, expected) in cases {
        assert_eq!(read(vec![text.as_bytes().to_vec()]).await, expected, "{text:?}");
        assert_eq!(read(text.bytes().map(|byte| vec![byte]).collect()).await, expected, "{text:?} by bytes");
    }
}

#[tokio::test]
async fn a_body_that_is_not_an_event_stream_is_detected_by_its_first_line() {
    for text in ["<html>", "{\"error\": 1}", "Bad gateway", "\n\n  [1]", "\u{1f}\u{8b}\u{8}data: "] {
        let expected = vec![Err(SseError::NotEvents(Bytes::copy_from_slice(text.trim_start_matches('\n').as_bytes())))];
        for chunks in [vec![text.as_bytes().to_vec()], text.bytes().map(|byte| vec![byte]).collect()] {
            let found = read(chunks).await;
            let body = |found: &[Result<SseEvent, SseError>]| match found {
                [Err(SseError::NotEvents(body))] => body.trim_ascii().to_vec(),
                other => panic!("{text:?}: {other:?}"),
            };
            assert_eq!(body(&found), body(&expected), "{text:?}");
        }
    }
}

#[tokio::test]
async fn stream_detection_does_not_depend_on_chunk_boundaries() {
    for bytes in
        [&b"\n\xEF"[..], b"\n\xEF\xBB\xBFdata: 1\n\n", b"\xEF\xBB\xBF\ndata: 1\n\n", b"\n\n  data: 1\n\n", b"\r\n\ndata: 1\n\n"]
    {
        let whole: Vec<_> = read(vec![bytes.to_vec()]).await.into_iter().map(Result::ok).collect();
        for size in 1..bytes.len() {
            let cut: Vec<_> = read(bytes.chunks(size).map(<[u8]>::to_vec).collect()).await.into_iter().map(Result::ok).collect();
            assert_eq!(cut, whole, "{bytes:?} in pieces of {size}");
        }
    }
}

#[tokio::test]
async fn an_unterminated_event_is_rejected_over_the_size_limit() {
    let mut chunks = vec![b"data: 1\n\ndata: ".to_vec()];
    chunks.extend((0..66).map(|_| vec![b'x'; 1 << 20]));
    assert_eq!(read(chunks).await, [event(None, "1", false), Err(SseError::TooLarge)]);
}

#[tokio::test]
async fn the_size_limit_applies_to_each_event_separately() {
    let chunk = [b"data: ".to_vec(), vec![b'x'; 1 << 20], b"\n\n".to_vec()].concat();
    let found = read(vec![chunk; 68]).await;
    assert_eq!(found.len(), 68);
    assert!(found.iter().all(Result::is_ok));
}

#[tokio::test]
async fn invalid_utf8_ends_the_stream() {
    assert_eq!(
        read(vec![b"data: 1\n\ndata: \xff\xfe\n\ndata: 2\n\n".to_vec()]).await,
        [event(None, "1", false), Err(SseError::NotText)]
    );
}

#[tokio::test]
async fn a_broken_connection_ends_the_stream_after_the_received_events() {
    let cut = HttpError::Cut { server: "s".to_owned(), reason: "reset".to_owned() };
    let body = stream::iter([Ok(Bytes::from_static(b"data: 1\n\ndata: 2")), Err(cut.clone())]);
    let found: Vec<_> = events(body).collect().await;
    assert_eq!(found, [event(None, "1", false), Err(SseError::Http(cut))]);
}

//! What a Python program gets from UniFFI: an await.

uniffi::setup_scaffolding!();

/// Does nothing, on a worker of tokio's: as a call of ours is answered by another thread.
#[uniffi::export(async_runtime = "tokio")]
async fn nop() {
    // It neither panics nor is cancelled.
    let _ = tokio::spawn(async {}).await;
}

/// Does nothing, where it is asked: no other thread has a part in it.
#[uniffi::export]
async fn ready() {}

//! Links of many actors.

use thalweg_runtime::{Config, Pid, channel, init, run, sleep, spawn};

use crate::kit::{LONG, boom, reason_of};

#[test]
fn ring_of_linked_actors_ends_completely() {
    for workers in [1, 2] {
        let ended = init(Config::with_workers(workers)).unwrap().run(|| {
            let (first_to, first) = channel::<Pid>();
            let (linked, links) = channel();
            let mut next = first;
            let mut ring = Vec::new();
            for _ in 0..100 {
                let (to, from) = channel::<Pid>();
                let before = std::mem::replace(&mut next, from);
                let linked = linked.clone();
                ring.push(spawn(move || {
                    to.send(Pid::current().expect("this is an actor"))
                        .expect("the next one waits");
                    before.recv().expect("the one before sends").link();
                    linked.send(()).expect("the first actor counts");
                    sleep(LONG);
                }));
            }
            let last = next.recv().expect("the last one sends");
            first_to.send(last).expect("the first one waits");
            assert_eq!(links.iter().take(100).count(), 100);
            ring[50].pid().exit(boom()).expect("it lives");
            ring.into_iter()
                .map(|actor| reason_of(actor.join()).to_string())
                .collect::<Vec<_>>()
        });
        assert_eq!(ended, vec!["boom"; 100]);
    }
}

#[test]
fn exit_of_a_hub_ends_all_actors_linked_to_it() {
    run(|| {
        let hub = spawn(|| sleep(LONG));
        let (linked, links) = channel();
        let spokes: Vec<_> = (0..5)
            .map(|_| {
                let (hub, linked) = (hub.pid(), linked.clone());
                spawn(move || {
                    hub.link();
                    linked.send(()).expect("the first actor counts");
                    sleep(LONG);
                })
            })
            .collect();
        assert_eq!(links.iter().take(5).count(), 5);
        hub.pid().exit(boom()).expect("it sleeps");
        for spoke in spokes {
            assert_eq!(reason_of(spoke.join()).to_string(), "boom");
        }
        assert!(hub.join().is_err());
    });
}

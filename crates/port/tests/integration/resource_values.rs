//! Resources inside values: their owners, and that unowned resources are closed.

use std::sync::Arc;
use thalweg_port::{CallError, Code, Completion, Instance, Port};
use thalweg_wire::{Handle, message};

use crate::lab;

#[test]
fn resources_in_a_list_belong_to_the_caller_until_dropped() {
    let client = lab::client();
    let mut held = lab::give(&client, 3).wait().unwrap();
    assert_eq!(lab::kept(&client), 3);
    let one = held.remove(1).into_client().unwrap();
    drop(held);
    assert_eq!(lab::kept(&client), 1);
    drop(one);
    assert_eq!(lab::kept(&client), 0);
}

#[test]
fn sent_resources_belong_to_the_service_and_unused_ones_are_closed() {
    let client = lab::client();
    let mut held = lab::give(&client, 4).wait().unwrap();
    let kept = held.remove(0);
    held.swap(0, 2);
    assert_eq!(lab::take(&client, &held, 1).wait().unwrap(), 3);
    assert_eq!(lab::kept(&client), 1);
    // The list is empty after the first call, so a second call has no resource to take.
    let again = lab::take(&client, &held, 1).wait().unwrap_err();
    assert!(matches!(again, CallError::Service(why) if why.contains("0 is not a handle")));
    drop(held);
    assert_eq!(lab::kept(&client), 1);
    let client_of_kept = kept.into_client().unwrap();
    assert_eq!(
        lab::take(&client, &[client_of_kept.into()], 1)
            .wait()
            .unwrap(),
        0
    );
    assert_eq!(lab::kept(&client), 0);
}

#[test]
fn resources_of_another_client_are_refused_and_closed() {
    let (client, other) = (lab::client(), lab::client());
    let held = lab::give(&other, 1).wait().unwrap();
    let refused = lab::take(&client, &held, 1).wait().unwrap_err();
    assert!(
        matches!(refused, CallError::Service(why) if why.contains("belongs to another client"))
    );
    assert_eq!(lab::kept(&other), 0);
}

#[test]
fn resource_keeps_its_instance_open_after_the_client_is_dropped() {
    let client = lab::client();
    let held = lab::give(&client, 1).wait().unwrap().remove(0);
    drop(client);
    let one = held.into_client().unwrap();
    assert_eq!(lab::kept(&one.0.client()), 1);
}

fn ended(instance: &Arc<Instance>, port: &Arc<Port>, method: u32, args: &[u8]) -> Completion {
    instance.submit(port, 0, method, args, u64::MAX).unwrap();
    port.wait(u64::MAX).unwrap();
    let mut reap = port.reap().unwrap();
    reap.next().unwrap()
}

fn kept(instance: &Arc<Instance>, port: &Arc<Port>) -> u64 {
    let ended = ended(instance, port, lab::KEPT, &lab::encode(lab::KEPT, &()));
    message::open_any(&ended.data).unwrap().owned().unwrap()
}

#[test]
fn unread_result_closes_all_its_resources() {
    let instance = Instance::open(lab::Lab::default, Instance::runtime().unwrap());
    let port = Port::open(4).unwrap();
    let mut given = ended(
        &instance,
        &port,
        lab::GIVE,
        &lab::encode(lab::GIVE, &(3u64,)),
    );
    assert_eq!(kept(&instance, &port), 3);
    let taken = Handle(given.take(1).unwrap());
    drop(given);
    assert_eq!(kept(&instance, &port), 1);
    thalweg_port::close_handle(taken.0).unwrap();
    assert_eq!(kept(&instance, &port), 0);
}

#[test]
fn message_with_more_handles_than_fields_is_refused() {
    let instance = Instance::open(lab::Lab::default, Instance::runtime().unwrap());
    let port = Port::open(4).unwrap();
    let handles = vec![Handle(1), Handle(2), Handle(3)];
    let mut args = lab::encode(lab::TAKE, &(handles, 0u64));
    // The list's length: the table has three handles, and the list has two.
    let length = message::root(3) as usize + 4;
    assert_eq!(args[length], 3);
    args[length] = 2;
    let ended = ended(&instance, &port, lab::TAKE, &args);
    assert_eq!(ended.code, Code::Argument, "{}", ended.message);
}

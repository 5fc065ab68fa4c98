mod baseline;
mod flow;
mod link;
mod page;
mod traffic;

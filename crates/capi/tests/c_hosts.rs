//! libtelltale as C and C++ programs meet it: installed, compiled against, linked both ways.

mod abi;
mod asked;
mod both;
mod cmake;
mod documented;
mod forks;
mod header;
mod installed;
mod programs;
mod torch;

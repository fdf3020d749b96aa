// A guest of the tests.
package main

import _ "thalweg.dev/go/thalweg/tests/service"

func main() {}

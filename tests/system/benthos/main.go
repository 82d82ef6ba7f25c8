// Benthos with its input cockroachdb_changefeed, and caches and outputs of files.
package main

import (
	"context"

	"github.com/benthosdev/benthos/v4/public/service"

	_ "github.com/benthosdev/benthos/v4/public/components/cockroachdb"
	_ "github.com/benthosdev/benthos/v4/public/components/io"
	_ "github.com/benthosdev/benthos/v4/public/components/pure"
)

func main() { service.RunCLI(context.Background()) }

import { Empty } from "../components/states";

export default function Page() {
  return <Empty />;
}
